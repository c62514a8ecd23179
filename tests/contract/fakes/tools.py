"""A tool for the tests of the fakes, and the arguments that the fakes generate for it."""

from __future__ import annotations

from dragoman.contract.json_types import JsonObject

__all__ = ["BOOKING", "BOOK_TOOL"]

BOOK_TOOL: JsonObject = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Books a room.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "nights": {"type": "integer", "minimum": 2}},
            "required": ["city", "nights"],
        },
    },
}
BOOKING: JsonObject = {"city": "東京", "nights": 2}
