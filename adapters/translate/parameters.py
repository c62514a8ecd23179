"""Moves the parameters of a request to their names and places in another protocol, and resolves those without one.

`left` is what is not translated yet, `made` the new request. Each function takes a parameter out of `left`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.parameters import copy_request, wants_usage
from dragoman.adapters.extras import drop_inner_extras, resolve_extra
from dragoman.adapters.fit import drop_or_reject
from dragoman.schemas import load

__all__ = [
    "ask_for_usage",
    "copy_parameters",
    "drop_stream_options",
    "find_holder",
    "move_member",
    "nest",
    "rename",
    "resolve_rest",
    "take_common",
]


def take_common(left: JsonObject, names: Collection[str]) -> JsonObject:
    """Take the parameters that have the same name in both protocols."""
    return {key: left.pop(key) for key in [*left] if key in names and left[key] is not None}


def copy_parameters(request: JsonObject, hub: str, ctx: Context) -> JsonObject:
    """Copy a request whose parameters are to be taken out; `hub` names its schema. Raises Fault for keys inside its
    messages that the target's policy refuses."""
    left = copy_request(request, ctx, hub)
    drop_inner_extras(left, ctx, hub)
    return left


def ask_for_usage(made: JsonObject, protocol: str, ctx: Context) -> None:
    """Ask a provider of chat for the usage of a stream, with which every stream of the client's protocol ends."""
    if not made.get("stream"):
        return
    if not wants_usage(ctx.call.body):
        ctx.receipt.record_fill(("stream_options",), f"a {protocol} stream ends with the usage")
    made["stream_options"] = {"include_usage": True}


def drop_stream_options(left: JsonObject, protocol: str, ctx: Context) -> None:
    """Drop the parameter with which clients of chat ask for usage."""
    if left.pop("stream_options", None) is not None:
        ctx.receipt.record_drop(("stream_options",), f"a {protocol} stream always ends with the usage", "form")


def rename(left: JsonObject, made: JsonObject, before: str, after: str, ctx: Context) -> None:
    """Give a parameter its other name."""
    value = left.pop(before, None)
    if value is not None:
        made[after] = value
        ctx.receipt.record_rename((before,), (after,), "the other protocol's name for it")


def move_member(left: JsonObject, made: JsonObject, before: tuple[str, str], after: str, ctx: Context) -> None:
    """Make a member of an object a parameter of its own."""
    holder = left.get(before[0])
    if isinstance(holder, dict) and holder.get(before[1]) is not None:
        left[before[0]] = {key: value for key, value in holder.items() if key != before[1]}
        made[after] = holder[before[1]]
        ctx.receipt.record_rename(before, (after,), "the other protocol's place for it")


def nest(left: JsonObject, made: JsonObject, before: str, after: tuple[str, str], ctx: Context) -> None:
    """Make a parameter a member of an object."""
    value = left.pop(before, None)
    if value is not None:
        find_holder(made, after[0], before, ctx)[after[1]] = value
        ctx.receipt.record_rename((before,), after, "the other protocol's place for it")


def find_holder(made: JsonObject, name: str, before: str, ctx: Context) -> JsonObject:
    """The object that is to hold the parameter `before`. If it is new, its path becomes that of the parameter."""
    if name not in made:
        made[name] = {}
        ctx.receipt.map_paths([((before,), (name,))])
    holder: JsonObject = made[name]
    return holder


def resolve_rest(
    left: JsonObject, made: JsonObject, hub: str, protocol: str, ctx: Context, holders: Collection[str] = ()
) -> None:
    """Drop or refuse the parameters that have no place in the other protocol, but for those that the target is
    configured to take. The members of `holders` are resolved one by one. Raises Fault."""
    if not left:
        return
    known, why = load(hub)["properties"], f"{protocol} has no place for it"
    for name in list(left):
        value: Any = left[name]
        if name in holders and isinstance(value, dict):
            for member in list(value):
                drop_or_reject(left, (name, member), ctx, why, hub)
        elif name in ctx.target.takes:
            made[name] = value
        elif name in known:
            drop_or_reject(left, (name,), ctx, why, hub)
        else:
            resolve_extra(left, (name,), ctx, hub=hub)
