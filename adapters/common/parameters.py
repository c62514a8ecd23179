"""Rewrites of a chat request's parameters that several dialects ask for. They alter the writer's own body."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.edits import remove, replace
from dragoman.adapters.fit import HUB_CHAT, hub_annotations, without_lacks
from dragoman.adapters.paths import lookup
from dragoman.adapters.validation import Judge

__all__ = ["begin", "nearest_effort", "token_limit", "wants_usage", "without_stream_options"]


def begin(request: JsonObject, ctx: Context, hub: str = HUB_CHAT) -> JsonObject:
    """The writer's own copy of a hub request, without what the target is configured to lack."""
    body = dict(request)
    without_lacks(body, ctx, hub)
    return body


def token_limit(body: JsonObject, ctx: Context) -> None:
    """`max_completion_tokens` under its older name, for targets that only know that one."""
    if "max_completion_tokens" not in body:
        return
    if "max_tokens" in body:
        ctx.receipt.dropped(("max_tokens",), "max_completion_tokens takes its place", "form")
        remove(body, ("max_tokens",))
    ctx.receipt.renamed(("max_completion_tokens",), ("max_tokens",), "the target's name for it")
    body["max_tokens"] = body.pop("max_completion_tokens")


def without_stream_options(body: JsonObject, ctx: Context) -> None:
    """Drop `stream_options`, toward providers that report usage in streams unasked: the reader brings it in form."""
    if "stream_options" in body:
        ctx.receipt.dropped(("stream_options",), "served by dragoman itself", "form")
        remove(body, ("stream_options",))


def wants_usage(request: JsonObject) -> bool:
    """True where the client asked for a usage chunk at the end of its stream."""
    options = request.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def nearest_effort(
    body: JsonObject, judge: Judge, ctx: Context, path: tuple[str, ...] = ("reasoning_effort",), hub: str = HUB_CHAT
) -> None:
    """Move the reasoning effort to the nearest rung that the target has; `none`, where it has none, is left out."""
    effort = lookup(body, path)
    rungs = _rungs(_rule(judge.schema, path))
    if effort is None or not rungs or effort in rungs:
        return
    ladder = _rungs(hub_annotations(hub)[path])
    if effort == "none" or effort not in ladder:
        ctx.receipt.dropped(path, f"the target has only {', '.join(rungs)}")
        remove(body, path)
        return
    nearest = min(rungs, key=lambda rung: abs(ladder.index(rung) - ladder.index(effort)))
    ctx.receipt.clamped(path, f"the target has only {', '.join(rungs)}; sent as {nearest}")
    replace(body, path, nearest)


def _rule(schema: JsonObject, path: tuple[str, ...]) -> JsonObject:
    """What a schema says of the property at a path."""
    rule: JsonObject = schema
    for name in path:
        if "$ref" in rule:
            rule = schema["$defs"][rule["$ref"].rpartition("/")[2]]
        rule = rule.get("properties", {}).get(name, {})
    return rule


def _rungs(rule: JsonObject) -> list[str]:
    return [rung for rung in rule.get("enum", ()) if rung is not None]
