"""Asks for the token counts of streams, which the log, the metrics and the limits need, for clients that do not.

A provider that takes `stream_options` reports the counts of a stream only if it is asked. The reader keeps what was not
asked for from the client (`chunk_normalizer`). If the provider refuses the option, the call is made once more without
it; if that succeeds, the target's model is not asked again. Where the option is an extra parameter (Azure), the policy
for these must let it pass, and the call has the header for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Literal, NamedTuple

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.common.usage import sum_usage
from dragoman.adapters.extras import EXTRA_PARAMETERS
from dragoman.adapters.faults import Kind
from dragoman.adapters.validation import load_validator
from dragoman.schemas import names

__all__ = ["REFUSALS", "StreamUsage", "ask_for_usage", "names_option", "remember_refusal", "sum_stream_usage"]

_OPTION, _FLAG = "stream_options", "include_usage"
_MOST_MODELS = 1_000  # of one target that are remembered: clients may choose their names


REFUSALS: frozenset[Kind] = frozenset({"invalid_request", "unsupported_parameter", "extra_parameter", "unprocessable"})
"""What a provider may call the refusal of an option."""


class StreamUsage(NamedTuple):
    """The call to make, and the same call without what dragoman has added about usage; None if it has added nothing."""

    call: Call
    without: Call | None


def ask_for_usage(call: Call, ctx: Context, protocol: str, client: Context) -> StreamUsage:
    """Add the option to a call of `protocol` if its target takes it and the policy says so. What a bridge has added for
    the client is of the same kind."""
    target, body = ctx.target, call.body
    if body.get("stream") is not True or target.policy.stream_usage != "ask":
        return StreamUsage(call, None)
    given, option = client.call.body.get(_OPTION), body.get(_OPTION)
    kind = _find_option(target.dialect, protocol, target.profile)
    if _asks(given) or kind is None or _OPTION in target.lacks:
        return StreamUsage(call, None)
    if kind == "extra" and target.policy.extra_parameters != "pass-through":
        return StreamUsage(call, None)
    if target.policy.replies not in ("repair", "strict") and not _asks(option):
        return StreamUsage(call, None)  # the client would get what it did not ask for
    without = call._replace(body=_remove_option(body, given)) if _asks(option) else call
    if target.model in target.without_usage:
        return StreamUsage(without, None)
    headers = call.headers if kind == "own" else {**call.headers, EXTRA_PARAMETERS: "pass-through"}
    return StreamUsage(call._replace(body={**body, _OPTION: {**(option or {}), _FLAG: True}}, headers=headers), without)


def sum_stream_usage(usages: Iterable[JsonObject | None]) -> JsonObject | None:
    """The usage of the streams of an answer whose client did not ask for it; None if no provider reports it."""
    return sum_usage([usage for usage in usages if usage]) or None


def names_option(raw: bytes) -> bool:
    """Whether the body of an error mentions the option."""
    return _OPTION.encode() in raw or _FLAG.encode() in raw


def remember_refusal(ctx: Context) -> None:
    """Do not ask this model of the target again."""
    known = ctx.target.without_usage
    if len(known) >= _MOST_MODELS:
        known.clear()
    known.add(ctx.target.model)


def _asks(option: object) -> bool:
    return isinstance(option, dict) and option.get(_FLAG) is True


def _remove_option(body: JsonObject, given: object) -> JsonObject:
    """The body with no more of the option than the client gave."""
    left = {name: value for name, value in body[_OPTION].items() if name != _FLAG}
    made = {name: value for name, value in body.items() if name != _OPTION}
    return {**made, _OPTION: left} if left or given is not None else made


@cache
def _find_option(dialect: str, protocol: str, profile: str) -> Literal["own", "extra"] | None:
    """Whether the option is a parameter of the dialect's own, or one that its servers take as an extra parameter."""
    name = f"{dialect}/{protocol}.request"
    if name not in names():
        return None
    validator = load_validator(name, profile)
    if _FLAG not in validator.schema["properties"].get(_OPTION, {}).get("properties", {}):
        return None
    return "own" if _OPTION in validator.defined else "extra"
