"""The corpus `corpus/*.json` as values. Fields named `held_out...` are never trained; only the evaluation asks them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "Corpus",
    "Fact",
    "InventedTools",
    "Newcomer",
    "Objects",
    "OffTopic",
    "Several",
    "Statement",
    "Syllables",
    "Tool",
    "ToolKind",
    "Variations",
    "load_corpus",
    "normalize_question",
]


@dataclass(frozen=True, slots=True)
class Fact:
    """One answer, and the questions that it answers."""

    answer: str
    questions: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A question in the words of a newcomer, never trained, and the answers that fit."""

    question: str
    answers: frozenset[str]


@dataclass(frozen=True, slots=True)
class OffTopic:
    """Questions of one language that the model declines. Patterns hold names of word lists, such as `{city}`."""

    answer: str
    patterns: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolKind:
    """A toy tool with several names. Its questions hold `{place}`, which becomes the argument."""

    names: tuple[str, ...]
    parameters: tuple[str, ...]
    questions: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Several:
    """A toy tool with several parameters, each with several names. Its questions hold `{0}`, `{1}`, ..."""

    names: tuple[str, ...]
    parameters: tuple[tuple[str, ...], ...]
    kinds: tuple[str, ...]
    questions: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that holds the values of an object: `{0}` is the first field. A field is (keys, kind of value)."""

    text: str
    fields: tuple[tuple[tuple[str, ...], str], ...]


@dataclass(frozen=True, slots=True)
class Objects:
    """Keys of objects, and ways to ask for an object: a list of its fields, or a sentence."""

    keys: tuple[str, ...]
    held_out_keys: tuple[str, ...]
    outer: tuple[str, ...]
    prefixes: tuple[str, ...]
    json_prefixes: tuple[str, ...]
    held_out_prefixes: tuple[str, ...]
    mentions: tuple[str, ...]
    joints: tuple[str, ...]
    statements: tuple[Statement, ...]
    held_out_statements: tuple[Statement, ...]
    unknown: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool with one parameter. The words of get_stock_price are "stock price"."""

    name: str
    parameter: str

    @property
    def words(self) -> str:
        return " ".join(self.name.split("_")[1:])


@dataclass(frozen=True, slots=True)
class InventedTools:
    """Questions for invented tools: `{name}` is the tool's name, `{words}` the words in it, `{place}` the argument."""

    verbs: tuple[str, ...]
    nouns: tuple[str, ...]
    parameters: tuple[str, ...]
    questions: tuple[str, ...]
    held_out_questions: tuple[str, ...]
    held_out: tuple[Tool, ...]


@dataclass(frozen=True, slots=True)
class Variations:
    """What varies a question: words before and after it, fillers, small words to leave out, synonyms of a part."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    fillers: tuple[str, ...]
    small: tuple[str, ...]
    synonyms: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Syllables:
    """The parts of invented words. `han` holds characters of Chinese names."""

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
    several_prefixes: tuple[str, ...]
    held_out_several_questions: tuple[str, ...]
    extras: tuple[str, ...]
    invented: InventedTools
    objects: Objects
    places: tuple[str, ...]
    held_out_places: tuple[str, ...]
    results: tuple[str, ...]
    held_out_results: tuple[str, ...]
    result_prefix: str
    other_parameters: tuple[str, ...]
    repeat: tuple[str, ...]
    held_out_repeat: tuple[str, ...]
    systems: tuple[str, ...]
    held_out_systems: tuple[str, ...]
    variations: Variations
    syllables: Syllables

    @property
    def pairs(self) -> tuple[Fact, ...]:
        return self.facts + self.small_talk

    def list_held_out(self) -> frozenset[str]:
        """The held-out questions that need no tool and no schema, normalized."""
        facts = (question for fact in self.pairs for question in fact.held_out)
        others = (question for topic in self.off_topic.values() for question in topic.held_out)
        newcomers = (newcomer.question for newcomer in self.newcomers)
        return frozenset(normalize_question(question) for question in (*facts, *others, *newcomers))

    def common_words(self) -> list[str]:
        """The words of the questions and answers, in lower case and sorted."""
        texts = (text for fact in self.facts for text in (fact.answer, *fact.questions))
        return sorted({word for text in texts for word in re.findall(r"[a-z]{2,}", text)})

    def texts(self) -> Iterator[str]:
        """The texts that train the tokenizer. Fillers of patterns are no part, so that they look like unknown words."""
        for fact in self.pairs:
            yield from (fact.answer, *fact.questions)
        for topic in self.off_topic.values():
            yield from (topic.answer, *topic.patterns)
        for kind in self.tools:
            yield from (*kind.names, *kind.parameters, *kind.questions)
        for several in self.several:
            yield from (*several.names, *several.questions)
            yield from (name for names in several.parameters for name in names)
        yield from (*self.several_prefixes, *self.objects.keys, *self.objects.prefixes, *self.objects.json_prefixes)
        yield from (statement.text for statement in self.objects.statements)
        yield from (*self.invented.verbs, *self.invented.nouns, *self.invented.parameters, *self.invented.questions)
        yield from (*self.repeat, self.result_prefix, *self.other_parameters, *self.systems)


def normalize_question(question: str) -> str:
    """Remove case, punctuation and spacing: questions that differ only in these become equal."""
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
        several_prefixes=tuple(tools["several_prefixes"]),
        held_out_several_questions=tuple(tools["held_out_several_questions"]),
        extras=tuple(tools["extras"]),
        invented=_invented(tools["invented"]),
        objects=_objects(objects),
        places=tuple(tools["places"]),
        held_out_places=tuple(tools["held_out_places"]),
        results=tuple(tools["results"]),
        held_out_results=tuple(tools["held_out_results"]),
        result_prefix=tools["result_prefix"],
        other_parameters=tuple(tools["other_parameters"]),
        repeat=tuple(tools["repeat"]),
        held_out_repeat=tuple(tools["held_out_repeat"]),
        systems=tuple(systems["messages"]),
        held_out_systems=tuple(systems["held_out"]),
        variations=Variations(**_tuples(wording), synonyms=tuple((old, tuple(others)) for old, others in synonyms)),
        syllables=Syllables(**_tuples(syllables)),
    )


def _read(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def _invented(entry: dict[str, Any]) -> InventedTools:
    held_out = tuple(Tool(**tool) for tool in entry["held_out"])
    return InventedTools(**_tuples(entry) | {"held_out": held_out})


def _newcomers(entries: list[dict[str, Any]], facts: tuple[Fact, ...]) -> tuple[Newcomer, ...]:
    """Resolve the file's references: it names an answer by a trained question with this answer."""
    known = {question: fact.answer for fact in facts for question in fact.questions}
    return tuple(
        Newcomer(entry["question"], frozenset(known[question] for question in entry["as"])) for entry in entries
    )


def _several(entry: dict[str, Any]) -> Several:
    return Several(**_tuples(entry) | {"parameters": _each(entry["parameters"])})


def _objects(entry: dict[str, Any]) -> Objects:
    statements, held_out = (
        tuple(
            Statement(each["text"], tuple((tuple(keys), kind) for keys, kind in each["fields"])) for each in entry[name]
        )
        for name in ("statements", "held_out_statements")
    )
    lists = {key: value for key, value in entry.items() if isinstance(value, list)}
    return Objects(
        **_tuples(lists) | {"statements": statements, "held_out_statements": held_out}, unknown=entry["unknown"]
    )


def _each(lists: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(names) for names in lists)


def _tuples(entry: Mapping[str, list[Any]]) -> dict[str, tuple[Any, ...]]:
    return {key: tuple(value) for key, value in entry.items()}


def _facts(entries: list[dict[str, Any]]) -> tuple[Fact, ...]:
    return tuple(Fact(entry["answer"], tuple(entry["questions"]), tuple(entry["held_out"])) for entry in entries)
