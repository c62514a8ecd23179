"""The items of a conversation: those of a request, those that a response adds, and whether calls and results match."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault

from .stored import StoredResponse

__all__ = ["again", "check_results", "is_cut_off", "is_sealed", "items_of", "reference", "replayed"]

_CALLS = frozenset({"function_call", "custom_tool_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_RENEWED = frozenset({"message", "reasoning", *_CALLS})
_REASONED = ("summary", "content", "encrypted_content")


def items_of(request: JsonObject) -> list[JsonObject]:
    """The input of a request as items."""
    given: str | list[JsonObject] | None = request.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return given or []


def reference(item: JsonObject) -> str | None:
    """The id of the item that this one only refers to."""
    item_id = item.get("id") if item.get("type", "item_reference") == "item_reference" and "role" not in item else None
    return item_id if isinstance(item_id, str) else None


def replayed(record: StoredResponse, sealed: bool) -> Iterator[JsonObject]:
    """What a response adds to the conversation. `sealed` says whether encrypted content is of use."""
    for item in record.input:
        made = item if sealed else _unsealed(item)
        if made is not None:
            yield made
    for item in record.response.get("output") or ():
        made = again(item, sealed)
        if made is not None:
            yield made


def again(item: JsonObject, sealed: bool) -> JsonObject | None:
    """An item of a response as one of an input, without the id, which a provider would look up in vain; None for a call
    that was cut off, and for reasoning of which nothing can be told. Calls of a provider's own tools keep their ids:
    OpenAI requires them. `sealed` says whether encrypted content is of use."""
    if is_cut_off(item):
        return None
    renewed = item.get("type") in _RENEWED
    made = {key: value for key, value in item.items() if not (renewed and key in ("id", "status"))}
    return made if sealed and _tells(made) else _unsealed(made)


def _unsealed(item: JsonObject) -> JsonObject | None:
    """The item without encrypted content; None where nothing else tells anything."""
    made = {key: value for key, value in item.items() if key != "encrypted_content"}
    return made if _tells(made) else None


def _tells(item: JsonObject) -> bool:
    return item.get("type") != "reasoning" or any(item.get(key) for key in _REASONED)


def is_cut_off(item: JsonObject) -> bool:
    """True for a call that was not told to its end."""
    return item.get("type") in _CALLS and item.get("status") not in (None, "completed")


def is_sealed(item: JsonObject) -> bool:
    return bool(item.get("encrypted_content"))


def check_results(before: list[StoredResponse], new: list[tuple[int, JsonObject]]) -> None:
    """Every result answers a call, and every call of the conversation has its result. Raises Fault."""
    calls: dict[object, bool] = {}  # call_id -> answered
    for record in before:
        for item in replayed(record, sealed=True):
            _count(item, calls)
    for i, item in new:
        if not _count(item, calls):
            text = f"input[{i}].call_id answers no call of this conversation"
            raise Fault("invalid_request", text, ("input", i, "call_id"), item.get("call_id"), code="invalid_value")
    for call_id, answered in calls.items():
        if not answered:
            text = f"the call {str(call_id)[:80]!r} of a previous response has no output in input"
            raise Fault("invalid_request", text, ("input",), code="invalid_value")


def _count(item: JsonObject, calls: dict[object, bool]) -> bool:
    """Take note of a call or of its result. False for a result without a call."""
    kind, call_id = item.get("type"), item.get("call_id")
    if kind in _CALLS:
        calls.setdefault(call_id, False)
    elif kind in _RESULTS:
        if call_id not in calls:
            return False
        calls[call_id] = True
    return True
