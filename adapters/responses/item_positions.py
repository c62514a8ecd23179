"""The positions of the items of one Responses stream: 0, 1, 2, ..., each for one item.

Some servers leave a position out, or give the position of an item that has ended to the next one; OpenAI's SDK fails at
both. Others leave out all positions, or give every event another id, or every item the same. So an event belongs to
the item with its `output_index`; if there is none, to the item with its id, unless the event begins an item. It belongs
to a new item if there is neither, or if it says what that item cannot: another call than the open one, and for an item
that has ended a beginning, a piece of a text, or another end. An item that is done without a text has not ended.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject

from .events import BY_DELTA
from .item_texts import may_still_speak

__all__ = ["ADDED", "DONE", "ItemPositions"]

ADDED, DONE = "response.output_item.added", "response.output_item.done"


class ItemPositions:
    """Maps the provider's `output_index` and ids to the positions of items, in the order in which items begin."""

    def __init__(self) -> None:
        self._by_index: dict[int, int] = {}
        self._by_id: dict[str, int] = {}
        self._calls: dict[int, Any] = {}  # position -> what names the call that the item is
        self._ended: dict[int, int] = {}  # position -> the hash of what its item said when it ended
        self._count = 0

    def place(self, body: JsonObject) -> bool:
        """Set the position of an event about an item in place. Returns True if nothing changed."""
        given, item = body.get("output_index"), body.get("item")
        index = given if type(given) is int else None
        if index is None and not isinstance(item, dict) and "item_id" not in body and body["type"] not in BY_DELTA:
            return True
        item_id = item.get("id") if isinstance(item, dict) else body.get("item_id")
        item_id = item_id if isinstance(item_id, str) and item_id else None
        position = self._find(body, index, item_id)
        if position is None:
            position, self._count = self._count, self._count + 1
        self._note(body, position, index, item_id)
        body["output_index"] = position
        return position == index

    def _find(self, body: JsonObject, index: int | None, item_id: str | None) -> int | None:
        known = None if index is None else self._by_index.get(index)
        if known is None and item_id is not None and (index is None or body["type"] != ADDED):
            known = self._by_id.get(item_id)
        return None if known is None or self._begins_another(body, known) else known

    def _begins_another(self, body: JsonObject, position: int) -> bool:
        name, ended = body["type"], self._ended.get(position)
        if name == ADDED:
            return ended is not None or self._calls.get(position) not in (None, _name_call(body.get("item")))
        if ended is None:
            return False
        return name in BY_DELTA or (name == DONE and ended != _hash_content(body.get("item")))

    def _note(self, body: JsonObject, position: int, index: int | None, item_id: str | None) -> None:
        if index is not None:
            self._by_index[index] = position
        if item_id is not None:
            self._by_id[item_id] = position
        if body["type"] == ADDED:
            self._calls.setdefault(position, _name_call(body.get("item")))
        elif body["type"] == DONE and not may_still_speak(body.get("item")):
            self._ended.setdefault(position, _hash_content(body.get("item")))


def _name_call(item: Any) -> Any:
    """What tells a call from others; None for other items."""
    if not isinstance(item, dict) or not item.get("call_id"):
        return None
    return repr((item.get("type"), item["call_id"]))


def _hash_content(item: Any) -> int:
    said = (
        {key: value for key, value in item.items() if key not in ("id", "status")} if isinstance(item, dict) else item
    )
    return hash(repr(said))
