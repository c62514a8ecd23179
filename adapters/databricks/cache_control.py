"""Marks of prompt caching. On Databricks only some models are documented to accept them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.edits import Edits
from dragoman.adapters.paths import Path

__all__ = ["drop_cache_control"]

_NAME = "cache_control"
_HOLDERS = ("content", "tool_calls")


def drop_cache_control(body: JsonObject, ctx: Context, names: Iterable[str]) -> None:
    """Drop the marks from these lists of a chat request, `messages` or `tools`, to a model that does not accept them,
    in place."""
    if _NAME in ctx.target.facts.nested or _NAME in ctx.target.takes:
        return
    places = [path for name in names for path in _find_marks(body.get(name), (name,))]
    if places:
        edits = Edits(body)
        for path in places:
            ctx.receipt.record_drop(path, "the model is not known to accept it on Databricks")
            edits.remove(path)


def _find_marks(items: Any, path: Path) -> Iterator[Path]:
    """Yield the paths of the marks in a list of messages, parts, calls or tools."""
    for i, item in enumerate(items) if isinstance(items, list) else ():
        if isinstance(item, dict):
            if _NAME in item:
                yield (*path, i, _NAME)
            for holder in _HOLDERS:
                if holder in item and isinstance(item[holder], list):
                    yield from _find_marks(item[holder], (*path, i, holder))
