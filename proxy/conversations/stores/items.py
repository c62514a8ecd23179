"""The pages of `GET /v1/responses/{id}/input_items`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault

__all__ = ["input_items"]

_LIMIT, _MOST = 20, 100
_INTEGER = re.compile(r"-?[0-9]{1,9}")
_SHOWN = 100  # characters of a client's value in a message

_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
}
_WITH_STATUS = frozenset(_PREFIXES) - {"reasoning"}


def input_items(response_id: str, items: Sequence[JsonObject], query: Mapping[str, str]) -> JsonObject:
    """One page of a response's input, as the list object of OpenAI's API (OpenAI OpenAPI 2.3).

    `query` may have `limit` (1 to 100, 20 if unset), `order` (asc or desc, which it is if unset) and the ids of items
    between which the page lies: it begins right behind `after`; without that, it ends right in front of `before`.
    `has_more` tells of items left between the two. Raises Fault `invalid_request`.
    """
    limit, order = _limit(query), _order(query)
    ids = _ids(response_id, items)
    positions = list(range(len(items)) if order == "asc" else reversed(range(len(items))))
    asked = [ids[position] for position in positions]
    between = positions[_behind(asked, query) : _before(asked, query)]
    page = between[-limit:] if "before" in query and "after" not in query else between[:limit]
    return {
        "object": "list",
        "data": [_shown(items[position], ids[position]) for position in page],
        "first_id": ids[page[0]] if page else None,
        "last_id": ids[page[-1]] if page else None,
        "has_more": len(page) < len(between),
    }


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit")
    if text is None:
        return _LIMIT
    if not _INTEGER.fullmatch(text):
        raise _fault("limit", text, "expected an integer", "invalid_type")
    limit = int(text)
    if not 1 <= limit <= _MOST:
        code = "integer_below_min_value" if limit < 1 else "integer_above_max_value"
        raise _fault("limit", text, f"expected 1 to {_MOST}", code)
    return limit


def _order(query: Mapping[str, str]) -> str:
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise _fault("order", order, "expected asc or desc", "invalid_value")
    return order


def _behind(ids: list[str], query: Mapping[str, str]) -> int:
    after = query.get("after")
    return 0 if after is None else _place(ids, "after", after) + 1


def _before(ids: list[str], query: Mapping[str, str]) -> int:
    before = query.get("before")
    return len(ids) if before is None else _place(ids, "before", before)


def _place(ids: list[str], name: str, wanted: str) -> int:
    if wanted not in ids:
        raise _fault(name, wanted, "the response has no input item with this id", "invalid_value")
    return ids.index(wanted)


def _fault(name: str, value: str, text: str, code: str) -> Fault:
    shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
    return Fault("invalid_request", f"{name} is not valid: {text}, got {shown!r}", (name,), value, code=code)


def _ids(response_id: str, items: Sequence[JsonObject]) -> list[str]:
    """The items' own ids. One that has none, or that of an item before it, gets an id that is the same each time."""
    ids: dict[str, None] = {}
    for position, item in enumerate(items):
        given = item.get("id")
        if not isinstance(given, str) or not given or given in ids:
            given = _made_id(response_id, position, item)
        ids[given] = None
    return list(ids)


def _made_id(response_id: str, position: int, item: JsonObject) -> str:
    digest = sha256(f"{response_id}/{position}".encode()).hexdigest()
    return f"{_PREFIXES.get(item.get('type') or 'message', 'item')}_{digest[:32]}"


def _shown(item: JsonObject, item_id: str) -> JsonObject:
    """The item with everything that OpenAI's lists of items always have. The item given is not altered."""
    kind = item.get("type") or "message"
    shown = {**item, "id": item_id, "type": kind}
    if kind in _WITH_STATUS:
        shown["status"] = item.get("status") or "completed"
    if kind == "message" and isinstance(item.get("content"), str):
        shown["content"] = [_text(item)]
    return shown


def _text(message: JsonObject) -> JsonObject:
    if message.get("role") == "assistant":
        return {"type": "output_text", "text": message["content"], "annotations": []}
    return {"type": "input_text", "text": message["content"]}
