"""What the model is to know: `corpus/*.json` as values. What is `held_out` is never trained, only asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "Clothes",
    "Corpus",
    "Fact",
    "InventedTools",
    "Newcomer",
    "Objects",
    "OffTopic",
    "Several",
    "Syllables",
    "Told",
    "Tool",
    "ToolKind",
    "load_corpus",
    "normal",
]


@dataclass(frozen=True, slots=True)
class Fact:
    """One answer, and the questions that it answers."""

    answer: str
    asked: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A question in the words of somebody who knows nothing, never trained, and the answers that fit."""

    asked: str
    answers: frozenset[str]


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
class Several:
    """A toy tool of several parameters, each under several names. Its questions hold `{0}`, `{1}`, ..."""

    names: tuple[str, ...]
    parameters: tuple[tuple[str, ...], ...]
    kinds: tuple[str, ...]
    asked: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence that holds what an object is made of: `{0}` is of the first field, (keys, kind of value)."""

    text: str
    fields: tuple[tuple[tuple[str, ...], str], ...]


@dataclass(frozen=True, slots=True)
class Objects:
    """Keys of objects, and ways to ask for one: a list of what is in it, or a sentence."""

    keys: tuple[str, ...]
    held_out_keys: tuple[str, ...]
    outer: tuple[str, ...]
    asked: tuple[str, ...]
    asked_json: tuple[str, ...]
    held_out_asked: tuple[str, ...]
    mentions: tuple[str, ...]
    joints: tuple[str, ...]
    told: tuple[Told, ...]
    held_out_told: tuple[Told, ...]
    unknown: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of one parameter: get_stock_price is of the words "stock price"."""

    name: str
    parameter: str

    @property
    def words(self) -> str:
        return " ".join(self.name.split("_")[1:])


@dataclass(frozen=True, slots=True)
class InventedTools:
    """How made-up tools are asked: `{name}` is the tool's, `{words}` the words in it, `{place}` the argument."""

    verbs: tuple[str, ...]
    nouns: tuple[str, ...]
    parameters: tuple[str, ...]
    asked: tuple[str, ...]
    held_out_asked: tuple[str, ...]
    held_out: tuple[Tool, ...]


@dataclass(frozen=True, slots=True)
class Clothes:
    """What varies a question: words before and behind it, fillers, small words to leave out, and synonyms of a part."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    fillers: tuple[str, ...]
    small: tuple[str, ...]
    synonyms: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Syllables:
    """What made-up words consist of. `han` are signs of Chinese names."""

    onsets: tuple[str, ...]
    vowels: tuple[str, ...]
    codas: tuple[str, ...]
    endings: tuple[str, ...]
    han: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    facts: tuple[Fact, ...]
    small_talk: tuple[Fact, ...]
    newcomers: tuple[Newcomer, ...]
    off_topic: Mapping[str, OffTopic]
    words: Mapping[str, tuple[str, ...]]
    tools: tuple[ToolKind, ...]
    several: tuple[Several, ...]
    held_out_several: tuple[tuple[str, ...], ...]
    several_asked: tuple[str, ...]
    held_out_several_asked: tuple[str, ...]
    extras: tuple[str, ...]
    invented: InventedTools
    objects: Objects
    places: tuple[str, ...]
    held_out_places: tuple[str, ...]
    results: tuple[str, ...]
    held_out_results: tuple[str, ...]
    told: str
    other_parameters: tuple[str, ...]
    repeat: tuple[str, ...]
    held_out_repeat: tuple[str, ...]
    systems: tuple[str, ...]
    held_out_systems: tuple[str, ...]
    clothes: Clothes
    syllables: Syllables

    @property
    def pairs(self) -> tuple[Fact, ...]:
        return self.facts + self.small_talk

    def held_out(self) -> frozenset[str]:
        """The held-out questions that stand alone, in normal form."""
        facts = (question for fact in self.pairs for question in fact.held_out)
        others = (question for topic in self.off_topic.values() for question in topic.held_out)
        newcomers = (newcomer.asked for newcomer in self.newcomers)
        return frozenset(normal(question) for question in (*facts, *others, *newcomers))

    def common_words(self) -> list[str]:
        """The words of the questions and answers, small and sorted."""
        texts = (text for fact in self.facts for text in (fact.answer, *fact.asked))
        return sorted({word for text in texts for word in re.findall(r"[a-z]{2,}", text)})

    def texts(self) -> Iterator[str]:
        """What the tokenizer learns from. What fills patterns is left out: a word in it looks like any unknown one."""
        for fact in self.pairs:
            yield from (fact.answer, *fact.asked)
        for topic in self.off_topic.values():
            yield from (topic.answer, *topic.patterns)
        for kind in self.tools:
            yield from (*kind.names, *kind.parameters, *kind.asked)
        for several in self.several:
            yield from (*several.names, *several.asked)
            yield from (name for names in several.parameters for name in names)
        yield from (*self.several_asked, *self.objects.keys, *self.objects.asked, *self.objects.asked_json)
        yield from (told.text for told in self.objects.told)
        yield from (*self.invented.verbs, *self.invented.nouns, *self.invented.parameters, *self.invented.asked)
        yield from (*self.repeat, self.told, *self.other_parameters, *self.systems)


def normal(question: str) -> str:
    """A question without case, punctuation and spacing: two that differ in no more are the same."""
    return re.sub(r"\W+", " ", question.lower()).strip()


def load_corpus(folder: Path = Path(__file__).parent / "corpus") -> Corpus:
    names = ("off_topic", "tools", "objects", "systems", "wording")
    off_topic, tools, objects, systems, wording = (_read(folder, name) for name in names)
    syllables, synonyms = wording.pop("syllables"), wording.pop("synonyms")
    facts = _facts(_read(folder, "facts"))
    return Corpus(
        facts=facts,
        small_talk=_facts(_read(folder, "small_talk")),
        newcomers=_newcomers(_read(folder, "newcomers"), facts),
        off_topic={
            language: OffTopic(answer, tuple(off_topic["patterns"][language]), tuple(off_topic["held_out"][language]))
            for language, answer in off_topic["answers"].items()
        },
        words={name: tuple(words) for name, words in off_topic["words"].items()},
        tools=tuple(ToolKind(**_tuples(kind)) for kind in tools["tools"]),
        several=tuple(_several(entry) for entry in tools["several"]),
        held_out_several=_each(tools["held_out_several"]),
        several_asked=tuple(tools["several_asked"]),
        held_out_several_asked=tuple(tools["held_out_several_asked"]),
        extras=tuple(tools["extras"]),
        invented=_invented(tools["invented"]),
        objects=_objects(objects),
        places=tuple(tools["places"]),
        held_out_places=tuple(tools["held_out_places"]),
        results=tuple(tools["results"]),
        held_out_results=tuple(tools["held_out_results"]),
        told=tools["told"],
        other_parameters=tuple(tools["other_parameters"]),
        repeat=tuple(tools["repeat"]),
        held_out_repeat=tuple(tools["held_out_repeat"]),
        systems=tuple(systems["asked"]),
        held_out_systems=tuple(systems["held_out"]),
        clothes=Clothes(**_tuples(wording), synonyms=tuple((old, tuple(others)) for old, others in synonyms)),
        syllables=Syllables(**_tuples(syllables)),
    )


def _read(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def _invented(entry: dict[str, Any]) -> InventedTools:
    held_out = tuple(Tool(**tool) for tool in entry["held_out"])
    return InventedTools(**_tuples(entry) | {"held_out": held_out})


def _newcomers(entries: list[dict[str, Any]], facts: tuple[Fact, ...]) -> tuple[Newcomer, ...]:
    """The file names an answer by a trained question that gets it."""
    known = {question: fact.answer for fact in facts for question in fact.asked}
    return tuple(Newcomer(entry["asked"], frozenset(known[question] for question in entry["as"])) for entry in entries)


def _several(entry: dict[str, Any]) -> Several:
    return Several(**_tuples(entry) | {"parameters": _each(entry["parameters"])})


def _objects(entry: dict[str, Any]) -> Objects:
    told, held_out = (
        tuple(Told(each["text"], tuple((tuple(keys), kind) for keys, kind in each["fields"])) for each in entry[name])
        for name in ("told", "held_out_told")
    )
    lists = {key: value for key, value in entry.items() if isinstance(value, list)}
    return Objects(**_tuples(lists) | {"told": told, "held_out_told": held_out}, unknown=entry["unknown"])


def _each(lists: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(names) for names in lists)


def _tuples(entry: Mapping[str, list[Any]]) -> dict[str, tuple[Any, ...]]:
    return {key: tuple(value) for key, value in entry.items()}


def _facts(entries: list[dict[str, Any]]) -> tuple[Fact, ...]:
    return tuple(Fact(entry["answer"], tuple(entry["asked"]), tuple(entry["held_out"])) for entry in entries)
