"""The positions of the items of one Responses stream: 0, 1, 2, ..., each for one item.

Some servers leave a position out, or give the position of an item that has ended to the next one. OpenAI's SDK fails at
both.
"""

from __future__ import annotations

from dragoman.adapters.call import JsonObject

__all__ = ["ItemPositions"]


class ItemPositions:
    """Maps the provider's `output_index` to the position of its item, in the order in which items begin."""

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}
        self._ended: set[int] = set()
        self._count = 0

    def place(self, body: JsonObject) -> bool:
        """Set the position of an event in place. Returns True if nothing changed."""
        index = body.get("output_index")
        if type(index) is not int:
            return True
        if index not in self._positions or (index in self._ended and body["type"] == _ADDED):
            self._positions[index] = self._count
            self._count += 1
            self._ended.discard(index)
        if body["type"] == _DONE:
            self._ended.add(index)
        position = body["output_index"] = self._positions[index]
        return position == index


_ADDED, _DONE = "response.output_item.added", "response.output_item.done"
