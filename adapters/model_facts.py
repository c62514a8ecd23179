"""What is documented about well-known models, found by the name that a provider gives a model.

The facts are data with sources, in `schemas/models`; `schemas/models.json` describes the files. A name is compared word
by word, so that the prefixes and suffixes of vendors, services and deployments do not matter. If the words of two
vendors are in a name, the first one counts: a model is named after what it is before what it learned from. Nothing is
assumed of unknown models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

__all__ = ["NO_FACTS", "Fact", "Family", "Maker", "ModelFacts", "Refusal", "Source", "find_facts", "load_families"]

Maker: TypeAlias = Literal["anthropic", "openai", "google", "xai", "none"]
"""A vendor whose models seal reasoning; `none` for models that never do."""


class Source(NamedTuple):
    """A public page."""

    title: str
    url: str


class Fact(NamedTuple):
    """One fact as it is shown: what it is about, its value as in the file, the family that has it and its source."""

    name: str
    value: Any
    family: str
    source: Source


class Refusal(NamedTuple):
    """Why a parameter is refused, unless it has one of the values `accepted`, or the effort is one of `efforts`."""

    accepted: tuple[Any, ...]
    efforts: frozenset[str]
    family: str
    source: Source

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
        return dialect in self.dialects or any(fnmatchcase(host, pattern) for pattern in self.hosts)


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
    """What is known of one model in one dialect. The fields are those of `schemas/models.json`; None and empty values
    mean that nothing is known. `facts` lists them for people. If `are_enforced`, the service is known to refuse what
    the model refuses."""

    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] | None = None
    efforts: tuple[str, ...] = ()
    default_effort: str | None = None
    refuses: Mapping[str, Refusal] = field(default_factory=dict)
    takes: frozenset[str] = frozenset()
    nested: frozenset[str] = frozenset()
    context: int | None = None
    output: int | None = None
    input: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    tokenizer: str | None = None
    seals: Maker | None = None
    replay: Literal["keep", "rename", "drop"] | None = None
    reasoning_tags: tuple[str, ...] = ()
    vendor: str | None = None
    families: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    are_enforced: bool = False

    def describe(self, name: str) -> str:
        """The family and the source of a fact, for a message; an empty text if nothing is known."""
        fact = next((one for one in self.facts if one.name == name), None)
        return "" if fact is None else f"{fact.family} ({fact.source.title})"


NO_FACTS = ModelFacts(refuses=MappingProxyType({}))

_NOT_FACTS = frozenset({"source", "on", "unless_effort"})
_MAKE: Mapping[str, Any] = {
    **dict.fromkeys(("efforts", "input", "protocols", "reasoning_tags"), tuple),
    **dict.fromkeys(("takes", "nested"), frozenset),
}


@lru_cache(maxsize=1024)
def find_facts(model: str, dialect: str = "", host: str = "") -> ModelFacts:
    """What is documented about a model, by the name that a provider with this dialect and host gives it."""
    families = _find_families(model) if model else []
    if not families:
        return NO_FACTS
    found: dict[str, Fact] = {}
    refuses: dict[str, Refusal] = {}
    for family in families:
        for entry in family.facts:
            if entry.get("on", dialect) == dialect:
                source = family.sources[entry["source"]]
                found |= {name: Fact(name, entry[name], family.title, source) for name in entry.keys() - _NOT_FACTS}
                refuses |= _read_refusals(entry, family.title, source)
    values = {name: _MAKE.get(name, _keep)(fact.value) for name, fact in found.items() if name != "refuses"}
    titles = tuple(family.title for family in families)
    return ModelFacts(
        **values,
        refuses=refuses,
        vendor=families[0].vendor,
        families=titles,
        facts=tuple(found.values()),
        are_enforced=families[0].services.include(dialect, host),
    )


def _keep(value: Any) -> Any:
    return value


def _read_refusals(entry: Mapping[str, Any], family: str, source: Source) -> dict[str, Refusal]:
    efforts = frozenset(entry.get("unless_effort", ()))
    refused: dict[str, list[Any]] = entry.get("refuses", {})
    return {name: Refusal(tuple(accepted), efforts, family, source) for name, accepted in refused.items()}


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
    folder = files("dragoman.schemas").joinpath("models")
    return tuple(
        family
        for file in sorted(folder.iterdir(), key=lambda one: one.name)
        if file.name.endswith(".json")
        for family in _read_file(json.loads(file.read_text("utf-8")))
    )


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
