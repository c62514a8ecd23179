"""Rewrites of a request's parameters that several dialects need. They alter the writer's own copy of the body."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.edits import remove, replace
from dragoman.adapters.fit import drop_lacking, is_taken
from dragoman.adapters.paths import Path, lookup
from dragoman.adapters.request_properties import EFFORTS, HUB_CHAT, HUB_RESPONSES, TOKEN_LIMITS, hub_annotations
from dragoman.adapters.validation import Validator

__all__ = [
    "clamp_effort",
    "copy_request",
    "drop_stream_options",
    "fill_stream_flag",
    "raise_token_limit",
    "wants_usage",
]


def copy_request(request: JsonObject, ctx: Context, hub: str = HUB_CHAT) -> JsonObject:
    """Copy a hub request, with an effort that the model has, and without the parameters that the target lacks.

    `hub` names the hub's schema. Raises Fault if the policy refuses to drop such a parameter.
    """
    body = dict(request)
    facts = ctx.target.facts
    if facts.efforts and hub in EFFORTS and EFFORTS[hub][0] not in ctx.target.takes:
        _clamp(body, EFFORTS[hub], facts.efforts, ctx, hub, facts.describe("efforts"))
    drop_lacking(body, ctx, hub)
    return body


def drop_stream_options(body: JsonObject, ctx: Context) -> None:
    """Drop `stream_options`, for providers that always report usage in streams; the reader normalizes it."""
    if "stream_options" in body and not is_taken("stream_options", ctx):
        ctx.receipt.record_drop(("stream_options",), "dragoman sends the usage itself", "form")
        remove(body, ("stream_options",))


def fill_stream_flag(body: JsonObject, ctx: Context) -> None:
    """Set `stream` for servers that stream unless the request says that they must not."""
    if body.get("stream") is None:
        note = ctx.receipt.record_conversion if "stream" in body else ctx.receipt.record_fill
        note(("stream",), "some servers stream by default")
        body["stream"] = False


def wants_usage(request: JsonObject) -> bool:
    """Whether the client asked for a usage chunk at the end of its stream."""
    options = request.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def clamp_effort(
    body: JsonObject,
    validator: Validator,
    ctx: Context,
    path: Path = ("reasoning_effort",),
    hub: str = HUB_CHAT,
) -> None:
    """Set the reasoning effort at `path` to the nearest level that the target has.

    The levels are the `enum` in the schema of `validator`, their order is that of the schema `hub`. If the target lacks
    `none`, the parameter is dropped.
    """
    if lookup(body, path) is None or is_taken(path[0], ctx):
        return
    if levels := _levels(_rule(validator.schema, path)):
        _clamp(body, path, levels, ctx, hub, "the target")


def raise_token_limit(body: JsonObject, validator: Validator, ctx: Context) -> None:
    """Raise the limit on the tokens of a response to the least that the target accepts.

    The other protocols have no such minimum, and their clients probe a server with a limit of 1.
    """
    (name,) = TOKEN_LIMITS[HUB_RESPONSES]
    least = validator.schema["properties"][name].get("minimum", 1)
    if 0 < (body.get(name) or least) < least and not is_taken(name, ctx):
        ctx.receipt.record_clamp((name,), f"the target accepts no limit below {least}")
        body[name] = least


def _clamp(body: JsonObject, path: Path, levels: Sequence[str], ctx: Context, hub: str, owner: str) -> None:
    effort = lookup(body, path)
    if effort is None or effort in levels:
        return
    ladder = _levels(hub_annotations(hub)[path])
    if effort == "none" or effort not in ladder:
        ctx.receipt.record_drop(path, f"{owner} has only {', '.join(levels)}")
        remove(body, path)
        return
    wanted = ladder.index(effort)
    nearest = min((level for level in levels if level != "none"), key=lambda level: abs(ladder.index(level) - wanted))
    ctx.receipt.record_clamp(path, f"{owner} has only {', '.join(levels)}; sent as {nearest}")
    replace(body, path, nearest)


def _rule(schema: JsonObject, path: Path) -> JsonObject:
    """The schema of the property at a path; empty if there is none."""
    rule: JsonObject = schema
    for name in path:
        if "$ref" in rule:
            rule = schema["$defs"][rule["$ref"].rpartition("/")[2]]
        rule = rule.get("properties", {}).get(name, {})
    return rule


def _levels(rule: JsonObject) -> list[str]:
    return [level for level in rule.get("enum", ()) if level is not None]
