"""What is documented about the model of a target, as lines for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.adapters.call import JsonObject, Target
from dragoman.adapters.model_facts import Fact

from .formatting import Line

__all__ = ["fact_to_json", "format_facts"]


def format_facts(target: Target) -> Iterator[Line]:
    """A line for each fact with its source; nothing for an unknown model."""
    facts = target.facts
    if facts.families:
        yield "bold", f"what is documented about {target.model} ({facts.families[-1]}):"
    for fact in facts.facts:
        yield "", f"   {fact.name}: {fact.show_value()} ({fact.source.title})"


def fact_to_json(fact: Fact) -> JsonObject:
    """The fact with its family and the address of its source."""
    return {"name": fact.name, "value": fact.value, "family": fact.family, "source": fact.source.url}
