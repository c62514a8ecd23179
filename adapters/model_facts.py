"""What is documented about well-known models, found by the name that a provider gives a model.

The facts are data with sources, in `schemas/models`; `schemas/models.json` describes the files. A name is compared word
by word, so that the prefixes and suffixes of vendors, services and deployments do not matter. If the words of two
vendors are in a name, the first one counts: a model is named after what it is before what it learned from. Nothing is
assumed of unknown models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from dragoman.schemas import load, model_files

__all__ = [
    "NO_FACTS",
    "Fact",
    "Family",
    "Maker",
    "ModelFacts",
    "Refusal",
    "Source",
    "find_facts",
    "list_facts",
    "load_families",
]

Maker: TypeAlias = Literal["anthropic", "openai", "google", "xai", "none"]
"""A vendor whose models seal reasoning; `none` for models that never do."""


class Source(NamedTuple):
    """A public page."""

    title: str
    url: str


class Fact(NamedTuple):
    """One fact as it is shown: what it is about, its value as in the file, the family that has it and its source. What
    a model refuses is a list of names."""

    name: str
    value: Any
    family: str
    source: Source

    def show_value(self) -> str:
        """The value as a text; items of a list with commas between them."""
        return ", ".join(map(str, self.value)) if isinstance(self.value, list) else str(self.value)


class Refusal(NamedTuple):
    """Why a parameter is refused, unless it has one of the values `accepted`, or the effort is one of `efforts`. If
    `is_enforced`, the service is known to refuse it; another service may ignore what the model does not take."""

    accepted: tuple[Any, ...]
    efforts: frozenset[str]
    family: str
    source: Source
    is_enforced: bool = False

    def applies(self, value: Any, effort: str | None) -> bool:
        """Whether the value is refused at this level of reasoning effort; None means that the level is unknown."""
        if value is None or value in self.accepted:
            return False
        return not self.efforts or (effort is not None and effort not in self.efforts)


class Services(NamedTuple):
    """The services that are known to refuse what a vendor's models refuse: of these dialects, or at these hosts."""

    dialects: frozenset[str]
    hosts: tuple[str, ...]

    def include(self, dialect: str, host: str) -> bool:
        """Whether a service with this dialect and host is one of them."""
        return dialect in self.dialects or _is_at(self.hosts, host)


class Family(NamedTuple):
    """Models with the same facts. `names`, `exceptions` and `facts` are those of its file, `sources` and `services` are
    those of its vendor."""

    vendor: str
    title: str
    names: tuple[str, ...]
    exceptions: tuple[str, ...]
    examples: tuple[str, ...]
    facts: tuple[Mapping[str, Any], ...]
    sources: Mapping[str, Source]
    services: Services

    def find(self, name: str) -> int | None:
        """The place of the family's words in a normalized name; None if the model is not of this family."""
        places = [place for word in self.names if (place := name.find(word)) >= 0]
        if not places or any(word in name for word in self.exceptions):
            return None
        return min(places)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of one model at one service. The fields are those of `schemas/models.json`; None and empty values
    mean that nothing is known. `facts` lists them for people. If `are_enforced`, the service is known to refuse what
    the model refuses."""

    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] | None = None
    efforts: tuple[str, ...] = ()
    default_effort: str | None = None
    thinking: Literal["budget", "adaptive"] | None = None
    refuses: Mapping[str, Refusal] = field(default_factory=dict)
    nested: frozenset[str] = frozenset()
    context: int | None = None
    output: int | None = None
    input: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    tokenizer: str | None = None
    seals: Maker | None = None
    call_signature: str | None = None
    replay: Literal["keep", "rename", "drop"] | None = None
    reasoning_tags: tuple[str, ...] = ()
    vendor: str | None = None
    families: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    are_enforced: bool = False

    @property
    def is_claude(self) -> bool:
        """Whether the model signs its thinking as Claude does: then it reads settings of thinking, and marks of prompt
        caching, in every protocol."""
        return self.seals == "anthropic"

    def describe(self, name: str) -> str:
        """The family and the source of a fact, for a message; an empty text if nothing is known."""
        fact = next((one for one in self.facts if one.name == name), None)
        return "" if fact is None else f"{fact.family} ({fact.source.title})"


NO_FACTS = ModelFacts(refuses=MappingProxyType({}))

_VALUES: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        ("max_tokens_name", "default_effort", "thinking", "tokenizer", "seals", "call_signature", "replay"), str
    ),
    **dict.fromkeys(("context", "output"), int),
    **dict.fromkeys(("efforts", "input", "protocols", "reasoning_tags"), tuple),
    "nested": frozenset,
}
"""The facts that have one value, and what makes that of the value in the file."""


@lru_cache(maxsize=1024)
def find_facts(model: str, dialect: str = "", host: str = "") -> ModelFacts:
    """What is documented about a model, by the name that a provider with this dialect and host gives it."""
    families = _find_families(model) if model else []
    if not families:
        return NO_FACTS
    found: dict[str, Fact] = {}
    refuses: dict[str, Refusal] = {}
    are_enforced = families[0].services.include(dialect, host)
    for family in families:
        for entry in family.facts:
            if entry.get("on", dialect) == dialect and _is_at(entry.get("at"), host):
                found |= {fact.name: fact for fact in _read_facts(entry, family)}
                refuses |= _read_refusals(entry, family, is_enforced=are_enforced or "on" in entry or "at" in entry)
    values = {name: _VALUES[name](fact.value) for name, fact in found.items()}
    titles = tuple(family.title for family in families)
    return ModelFacts(
        **values,
        refuses=refuses,
        vendor=families[0].vendor,
        families=titles,
        facts=(*found.values(), *_list_refusals(refuses)),
        are_enforced=are_enforced,
    )


def _is_at(hosts: Sequence[str] | None, host: str) -> bool:
    """Whether the host matches one of these patterns; None means every host."""
    return hosts is None or any(fnmatchcase(host, pattern) for pattern in hosts)


def list_facts(family: Family) -> Iterator[tuple[list[str], list[Fact]]]:
    """The facts of a family, those of one source together, each with the dialect or the hosts that they are about, if
    they do not hold for all services."""
    for entry in family.facts:
        where = [entry["on"]] if "on" in entry else entry.get("at", [])
        yield where, [*_read_facts(entry, family), *_list_refusals(_read_refusals(entry, family))]


def _read_facts(entry: Mapping[str, Any], family: Family) -> list[Fact]:
    source = family.sources[entry["source"]]
    return [Fact(name, entry[name], family.title, source) for name in entry if name in _VALUES]


def _read_refusals(entry: Mapping[str, Any], family: Family, *, is_enforced: bool = False) -> dict[str, Refusal]:
    efforts, source = frozenset(entry.get("unless_effort", ())), family.sources[entry["source"]]
    refused: dict[str, list[Any]] = entry.get("refuses", {})
    return {
        name: Refusal(tuple(accepted), efforts, family.title, source, is_enforced) for name, accepted in refused.items()
    }


def _list_refusals(refuses: Mapping[str, Refusal]) -> Iterator[Fact]:
    """What is refused as facts: one for the parameters that are refused for the same reason."""
    groups: dict[Refusal, list[str]] = {}
    for name, refusal in refuses.items():
        groups.setdefault(refusal._replace(accepted=()), []).append(name)
    for (_, efforts, family, source, _), names in groups.items():
        unless = f" unless the effort is {' or '.join(sorted(efforts))}" if efforts else ""
        yield Fact(f"refuses{unless}", sorted(names), family, source)


def _find_families(model: str) -> list[Family]:
    """The families that have a model, the general ones first."""
    name = _normalize(f"/{model}") + "-"
    found = [(place, family) for family in load_families() if (place := family.find(name)) is not None]
    if not found:
        return []
    _, first = min(found, key=lambda pair: pair[0])
    return [family for _, family in found if family.vendor == first.vendor]


@cache
def load_families() -> tuple[Family, ...]:
    """All families, in the order of their files."""
    return tuple(family for name in model_files() for family in _read_file(load(name)))


def _read_file(content: Any) -> Iterator[Family]:
    sources = {name: Source(source["title"], source["url"]) for name, source in content["sources"].items()}
    listed = content.get("services", {})
    services = Services(frozenset(listed.get("dialects", ())), tuple(listed.get("hosts", ())))
    for family in content["families"]:
        names, exceptions = (tuple(map(_make_needle, family.get(key, ()))) for key in ("names", "except"))
        examples, facts = tuple(family["examples"]), tuple(family["facts"])
        yield Family(content["vendor"], family["title"], names, exceptions, examples, facts, sources, services)


def _make_needle(word: str) -> str:
    """What a normalized name has to hold if it has this word of a family."""
    before, after = ("" if word.startswith("*") else "-"), ("" if word.endswith("*") else "-")
    return f"{before}{_normalize(word.strip('*')).strip('-')}{after}"


def _normalize(name: str) -> str:
    """A name in lower case, with a hyphen between words, and around each slash."""
    return re.sub("[^a-z0-9/]+", "-", name.lower().replace("/", "-/-"))
