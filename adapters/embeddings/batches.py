"""Many inputs in several calls: a request is split if its provider takes fewer inputs at once, and the replies are
joined in order, as if there had been one."""

from __future__ import annotations

from functools import partial
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.usage import sum_usage
from dragoman.adapters.dialect import Batching
from dragoman.adapters.faults import Fault
from dragoman.schemas import load

__all__ = ["MOST_PARTS", "join", "make_batching", "split"]

MOST_PARTS = 256
"""Calls that one request may become."""


def make_batching(schema: str) -> Batching:
    """Splitting and joining for a target whose requests have the schema of that name."""
    return Batching(partial(_split_by_schema, schema=schema), join)


def split(ctx: Context, most: int | None) -> list[Context]:
    """One context for each call of at most that many inputs, its request a part of the whole; paths of the part lead
    back to those of the whole. Raises Fault if there would be more than MOST_PARTS."""
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
    """Replies in hub form, one for each part, as one: indexes follow on, counts are added up. Alters them.

    Raises Fault for vectors of different lengths.
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
