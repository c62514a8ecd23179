"""The page of facts about well-known models: a table for each vendor, with the source of each fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from dragoman.adapters.model_facts import Fact, Family, list_facts

from .markdown import HEAD, code, lines, table

__all__ = ["models_page"]

_TITLES = ("Models", "Facts", "Source")


def models_page(families: Iterable[Family]) -> str:
    """The page of these families."""
    body = [
        HEAD,
        "",
        *lines(
            "# Facts about well-known models",
            "What is documented about models decides what becomes of a request. A model is found by the words of the "
            "name that its provider gives it, so `openai/gpt-5-mini` and `databricks-gpt-5-mini` are both GPT-5. If a "
            "name has the words of several families, the facts of the later one count. Nothing is assumed of any other "
            "model. The facts are data in `schemas/models`; `dragoman schema models/openai` prints a file, and "
            "`dragoman explain` shows the facts about the model of a target.",
            "The settings of a target count more: `takes` sends what the model is said to refuse and an effort that it "
            "is said to lack, `lacks` refuses more, `max_tokens_name` and `reasoning_replay` replace those facts, and "
            "`limits.max_tokens` of the provider replaces `output`.",
            "- `refuses`: the parameter is refused or dropped, by the policy `unsupported`.\n"
            "- `efforts`: another level of reasoning effort moves to the nearest one, which is recorded as a loss.\n"
            "- `output`: a larger limit on tokens is refused, clamped or dropped, by the policy `out_of_range`.\n"
            "- `max_tokens_name`: the name of the limit on tokens in chat.\n"
            "- `seals`: whose signatures and encrypted reasoning of earlier turns the model gets.\n"
            "- `call_signature`: what a call of an earlier turn gets that came back without its signature.\n"
            "- `replay`: how the readable reasoning of earlier turns goes back.\n"
            "- `nested`: keys of messages and tools that Databricks accepts for these models.\n"
            "- `protocols`: whether the model has OpenAI's Responses on Databricks.\n"
            "- `tokenizer`: how tokens are decoded for providers that take only text.\n"
            "- `context`, `input` and `reasoning_tags` are shown only.",
            "If the policy is to refuse, dragoman refuses only what the service is known to refuse too: many gateways "
            "ignore what a model does not take. The services are named below each table.",
        ),
    ]
    for vendor, group in groupby(families, key=lambda family: family.vendor):
        members = list(group)
        body += [*lines(f"## {vendor}"), *table(_TITLES, [row for one in members for row in _describe(one)])]
        body += lines(_name_services(members[0]))
    return "\n".join(body).rstrip("\n") + "\n"


def _describe(family: Family) -> Iterator[tuple[str, str, str]]:
    title = f"{family.title}, such as {' and '.join(map(code, family.examples[:2]))}"
    for places, facts in list_facts(family):
        where = f"on {', '.join(map(code, places))}: " if places else ""
        source = facts[0].source
        yield title, where + ", ".join(map(_show, facts)), f"[{source.title}]({source.url})"
        title = ""


def _show(fact: Fact) -> str:
    values = fact.value if isinstance(fact.value, list) else [fact.value]
    return f"{fact.name} {' '.join(code(str(value)) for value in values)}"


def _name_services(family: Family) -> str:
    services = family.services
    named = [*(f"the dialect {one}" for one in sorted(services.dialects)), *map(code, services.hosts)]
    if not named:
        return "No service is known to refuse what these models refuse."
    return f"Services that are known to refuse what these models refuse: {', '.join(named)}."
