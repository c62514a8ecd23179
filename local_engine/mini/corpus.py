"""What the model is to know: `corpus/*.json` as values. `held_out` questions are never trained, only asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Corpus", "Fact", "OffTopic", "ToolKind", "load_corpus", "normal"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One answer, and the questions that it answers."""

    answer: str
    asked: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OffTopic:
    """Questions of one language that are declined. Patterns hold names of word lists, as in `{city}`."""

    answer: str
    patterns: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolKind:
    """A toy tool under several names. Its questions hold `{place}`, which becomes the argument."""

    names: tuple[str, ...]
    parameters: tuple[str, ...]
    asked: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    facts: tuple[Fact, ...]
    small_talk: tuple[Fact, ...]
    off_topic: Mapping[str, OffTopic]
    words: Mapping[str, tuple[str, ...]]
    tools: tuple[ToolKind, ...]
    places: tuple[str, ...]
    held_out_places: tuple[str, ...]
    results: tuple[str, ...]
    held_out_results: tuple[str, ...]
    told: str
    systems: tuple[str, ...]
    held_out_systems: tuple[str, ...]

    @property
    def pairs(self) -> tuple[Fact, ...]:
        return self.facts + self.small_talk

    def held_out(self) -> frozenset[str]:
        """The held-out questions that stand alone, in normal form."""
        facts = (question for fact in self.pairs for question in fact.held_out)
        others = (question for topic in self.off_topic.values() for question in topic.held_out)
        return frozenset(normal(question) for question in (*facts, *others))

    def texts(self) -> Iterator[str]:
        """Everything that is trained, once: what the tokenizer learns from."""
        for fact in self.pairs:
            yield from (fact.answer, *fact.asked)
        for topic in self.off_topic.values():
            yield from (topic.answer, *topic.patterns)
        for kind in self.tools:
            yield from (*kind.names, *kind.parameters, *kind.asked)
        for words in self.words.values():
            yield from words
        yield from (*self.places, *self.results, self.told, *self.systems)


def normal(question: str) -> str:
    """A question without case, punctuation and spacing: two that differ in no more are the same."""
    return re.sub(r"\W+", " ", question.lower()).strip()


def load_corpus(folder: Path = Path(__file__).parent / "corpus") -> Corpus:
    off_topic, tools, systems = (_read(folder, name) for name in ("off_topic", "tools", "systems"))
    return Corpus(
        facts=_facts(_read(folder, "facts")),
        small_talk=_facts(_read(folder, "small_talk")),
        off_topic={
            language: OffTopic(answer, tuple(off_topic["patterns"][language]), tuple(off_topic["held_out"][language]))
            for language, answer in off_topic["answers"].items()
        },
        words={name: tuple(words) for name, words in off_topic["words"].items()},
        tools=tuple(ToolKind(**{key: tuple(value) for key, value in kind.items()}) for kind in tools["tools"]),
        places=tuple(tools["places"]),
        held_out_places=tuple(tools["held_out_places"]),
        results=tuple(tools["results"]),
        held_out_results=tuple(tools["held_out_results"]),
        told=tools["told"],
        systems=tuple(systems["asked"]),
        held_out_systems=tuple(systems["held_out"]),
    )


def _read(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def _facts(entries: list[dict[str, Any]]) -> tuple[Fact, ...]:
    return tuple(Fact(entry["answer"], tuple(entry["asked"]), tuple(entry["held_out"])) for entry in entries)
