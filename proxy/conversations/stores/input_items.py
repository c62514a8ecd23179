"""Pages of a response's input, for `GET /v1/responses/{id}/input_items`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault

__all__ = ["list_input_items"]

_DEFAULT_LIMIT, _MAX_LIMIT = 20, 100
_INTEGER = re.compile(r"-?[0-9]{1,9}")
_MAX_QUOTED = 100  # characters of a client's value in a message

_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
}
_WITH_STATUS = frozenset(_PREFIXES) - {"reasoning"}


def list_input_items(response_id: str, items: Sequence[JsonObject], query: Mapping[str, str]) -> JsonObject:
    """One page of a response's input, as the list object of OpenAI's API (OpenAI OpenAPI 2.3).

    `query` may have `limit` (1 to 100, default 20), `order` (asc or desc, default desc), and two item ids that bound
    the page: it begins right after the item `after`; without `after`, it ends right before the item `before`.
    `has_more` is true if the page leaves out items between the bounds. Raises Fault `invalid_request`.
    """
    limit, order = _parse_limit(query), _parse_order(query)
    ids = _assign_ids(response_id, items)
    positions = list(range(len(items)) if order == "asc" else reversed(range(len(items))))
    ordered = [ids[position] for position in positions]
    between = positions[_find_start(ordered, query) : _find_end(ordered, query)]
    page = between[-limit:] if "before" in query and "after" not in query else between[:limit]
    return {
        "object": "list",
        "data": [_complete_item(items[position], ids[position]) for position in page],
        "first_id": ids[page[0]] if page else None,
        "last_id": ids[page[-1]] if page else None,
        "has_more": len(page) < len(between),
    }


def _parse_limit(query: Mapping[str, str]) -> int:
    text = query.get("limit")
    if text is None:
        return _DEFAULT_LIMIT
    if not _INTEGER.fullmatch(text):
        raise _create_fault("limit", text, "expected an integer", "invalid_type")
    limit = int(text)
    if not 1 <= limit <= _MAX_LIMIT:
        code = "integer_below_min_value" if limit < 1 else "integer_above_max_value"
        raise _create_fault("limit", text, f"expected 1 to {_MAX_LIMIT}", code)
    return limit


def _parse_order(query: Mapping[str, str]) -> str:
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise _create_fault("order", order, "expected asc or desc", "invalid_value")
    return order


def _find_start(ids: list[str], query: Mapping[str, str]) -> int:
    after = query.get("after")
    return 0 if after is None else _find_index(ids, "after", after) + 1


def _find_end(ids: list[str], query: Mapping[str, str]) -> int:
    before = query.get("before")
    return len(ids) if before is None else _find_index(ids, "before", before)


def _find_index(ids: list[str], name: str, wanted: str) -> int:
    if wanted not in ids:
        raise _create_fault(name, wanted, "the response has no input item with this id", "invalid_value")
    return ids.index(wanted)


def _create_fault(name: str, value: str, text: str, code: str) -> Fault:
    shown = value if len(value) <= _MAX_QUOTED else value[:_MAX_QUOTED] + "..."
    return Fault("invalid_request", f"{name} is not valid: {text}, got {shown!r}", (name,), value, code=code)


def _assign_ids(response_id: str, items: Sequence[JsonObject]) -> list[str]:
    """The ids of the items. An item without an id, or with that of an earlier item, gets the same made-up id each
    time."""
    ids: dict[str, None] = {}
    for position, item in enumerate(items):
        given = item.get("id")
        if not isinstance(given, str) or not given or given in ids:
            given = _make_id(response_id, position, item)
        ids[given] = None
    return list(ids)


def _make_id(response_id: str, position: int, item: JsonObject) -> str:
    digest = sha256(f"{response_id}/{position}".encode()).hexdigest()
    return f"{_PREFIXES.get(item.get('type') or 'message', 'item')}_{digest[:32]}"


def _complete_item(item: JsonObject, item_id: str) -> JsonObject:
    """A copy of the item with every field that OpenAI's lists of items always have."""
    kind = item.get("type") or "message"
    shown = {**item, "id": item_id, "type": kind}
    if kind in _WITH_STATUS:
        shown["status"] = item.get("status") or "completed"
    if kind == "message" and isinstance(item.get("content"), str):
        shown["content"] = [_text_part(item)]
    return shown


def _text_part(message: JsonObject) -> JsonObject:
    if message.get("role") == "assistant":
        return {"type": "output_text", "text": message["content"], "annotations": []}
    return {"type": "input_text", "text": message["content"]}
