"""Splits a request with more inputs than its provider takes in one call, and joins the replies in order."""

from __future__ import annotations

from functools import partial
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.usage import sum_usage
from dragoman.adapters.emulation.interface import Emulation
from dragoman.adapters.faults import Fault
from dragoman.schemas import load

__all__ = ["MOST_PARTS", "join", "make_batching", "split"]

MOST_PARTS = 256
"""How many calls one request may need at most."""


def make_batching(schema: str) -> Emulation:
    """Make the batching of a dialect; `schema` names its request schema, which limits the inputs of a call."""
    return Emulation(partial(_split_by_schema, schema=schema), join)


def split(ctx: Context, most: int | None) -> list[Context]:
    """Split a request into calls of at most `most` inputs. Returns one context for each call.

    Each context's request has a part of the inputs, and its receipt maps paths of the part to those of the whole.
    Raises Fault if more than MOST_PARTS calls would be needed.
    """
    given: Any = ctx.request.get("input")
    if most is None or not isinstance(given, list) or len(given) <= most or isinstance(given[0], int):
        return [ctx]
    if len(given) > most * MOST_PARTS:
        text = (
            f"input has {len(given)} items, and the model's provider takes {most} in one call: "
            f"send at most {most * MOST_PARTS} in one request"
        )
        raise Fault("invalid_request", text, ("input",), code="array_above_max_length")
    return [_make_part(ctx, given, start, min(start + most, len(given))) for start in range(0, len(given), most)]


def join(replies: list[JsonObject], _ctx: Context) -> JsonObject:
    """Join the parts' replies, in hub form: indexes are renumbered, counts are added up. Alters the replies.

    Raises Fault if vectors have different lengths.
    """
    data: list[JsonObject] = [item for reply in replies for item in reply["data"]]
    length = len(data[0]["embedding"])
    for index, item in enumerate(data):
        item["index"] = index
        if len(item["embedding"]) != length:
            text = "the provider sent vectors of different lengths for one request"
            raise Fault("upstream_invalid_response", text, ("input", index), code="upstream_invalid_response")
    return {**replies[0], "data": data, "usage": sum_usage([reply["usage"] for reply in replies])}


def _split_by_schema(ctx: Context, schema: str) -> list[Context]:
    rule = load(schema, ctx.target.profile)["properties"]["input"]
    known = [rule.get("x-batch"), rule.get("maxItems"), ctx.target.limits.get("inputs")]
    return split(ctx, min((most for most in known if most is not None), default=None))


def _make_part(ctx: Context, given: list[Any], start: int, end: int) -> Context:
    receipt = ctx.receipt.fork()
    receipt.map_paths([(("input", start + i), ("input", i)) for i in range(end - start)])
    return ctx._replace(request={**ctx.request, "input": given[start:end]}, receipt=receipt)
