"""The name of the limit on generated tokens in a chat request: `max_tokens`, or the newer `max_completion_tokens`.

A target gets the first name that one of these decides:

    the target's setting `max_tokens_name`
    the name that the client wrote, if the target's setting `takes` lists it
    what is documented about the model, if the dialect decides by it: OpenAI's reasoning models refuse `max_tokens`
    the name that the client wrote, if servers of the dialect differ in what they know
    the dialect's default
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dragoman.adapters.call import Context, JsonObject, MaxTokensName
from dragoman.adapters.edits import remove

__all__ = ["TokenLimitRule", "keeps_token_limit", "rename_token_limit"]

_OTHER: Mapping[str, MaxTokensName] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}


@dataclass(frozen=True, slots=True)
class TokenLimitRule:
    """How a dialect names the limit.

    `default` is its name; None means that the name stays as it is. `by_address` maps other forms of address to theirs.
    If `by_model`, models that are documented to know only one name get that. If `keeps_name`, the name that the client
    wrote stays.
    """

    default: MaxTokensName | None = "max_tokens"
    by_address: Mapping[str | None, MaxTokensName] = field(default_factory=dict)
    by_model: bool = False
    keeps_name: bool = False


def keeps_token_limit(body: JsonObject, ctx: Context, rule: TokenLimitRule) -> bool:
    """Whether the limit of a chat request keeps its name and is not above what the target's model generates."""
    names = _OTHER.keys() & body.keys()
    if len(names) != 1:
        return not names
    (name,) = names
    most, limit = ctx.target.most_output, body[name]
    return _choose_name(name, ctx, rule) == name and (most is None or limit is None or limit <= most)


def rename_token_limit(body: JsonObject, ctx: Context, rule: TokenLimitRule) -> str | None:
    """Rename the limit in the writer's own copy of a chat request. Return its name, None if there is no limit.

    If the body has both names, the newer one counts.
    """
    if _OTHER.keys().isdisjoint(body):
        return None
    given: MaxTokensName = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    name = _choose_name(given, ctx, rule)
    if _OTHER[given] in body:
        ctx.receipt.record_drop((_OTHER[given],), f"{given} replaces it", "form")
        remove(body, (_OTHER[given],))
    if name != given and body[given] is None:
        ctx.receipt.record_drop((given,), "null means no limit", "form")
        del body[given]
    elif name != given:
        ctx.receipt.record_rename((given,), (name,), "the target's name for it")
        body[name] = body.pop(given)
    return name


def _choose_name(given: str, ctx: Context, rule: TokenLimitRule) -> str:
    target = ctx.target
    if target.max_tokens_name is not None:
        return target.max_tokens_name
    if given in target.takes:
        return given
    if rule.by_model and target.facts.max_tokens_name is not None:
        return target.facts.max_tokens_name
    if rule.keeps_name and given in ctx.call.body:
        return given
    return rule.by_address.get(target.address, rule.default) or given
