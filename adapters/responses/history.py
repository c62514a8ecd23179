"""Lists the items of a conversation, from requests and stored responses, and checks that calls have results."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault

from .built_in_tools import BUILT_IN_CALLS, BUILT_IN_RESULTS, read_result, runs_at_client
from .stored import StoredResponse

__all__ = [
    "check_results",
    "find_repeated_items",
    "has_encrypted_content",
    "is_cut_off",
    "list_items",
    "referenced_item_id",
    "replay_response",
    "to_input_item",
]

_WITHOUT_ID = frozenset({"message", "reasoning", "function_call", "custom_tool_call"})
_CALLS = frozenset({"function_call", "custom_tool_call", *BUILT_IN_CALLS})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", *BUILT_IN_RESULTS})
_REASONING_KEYS = ("summary", "content", "encrypted_content")


def list_items(request: JsonObject) -> list[JsonObject]:
    """The input of a request as a list of items; a text is one user message."""
    given: str | list[JsonObject] | None = request.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return given or []


def referenced_item_id(item: JsonObject) -> str | None:
    """The id of the item that an `item_reference` refers to; None for other items."""
    item_id = item.get("id") if item.get("type", "item_reference") == "item_reference" and "role" not in item else None
    return item_id if isinstance(item_id, str) else None


def replay_response(record: StoredResponse, keeps_encrypted: bool) -> Iterator[JsonObject]:
    """The items that a stored response adds to the conversation: its own input, then its output as input items.

    `keeps_encrypted` is true if the next provider can read encrypted content; else it is dropped.
    """
    for item in record.input:
        made = item if keeps_encrypted else _drop_encrypted_content(item)
        if made is not None:
            yield made
    for item in record.response.get("output") or ():
        made = to_input_item(item, keeps_encrypted)
        if made is not None:
            yield made


def to_input_item(item: JsonObject, keeps_encrypted: bool) -> JsonObject | None:
    """Turn an output item into an input item; None for a call that was cut off, and for reasoning without content.

    Ids are dropped, because the next provider does not know them; but calls of a provider's own tools keep their ids,
    because OpenAI requires them. `keeps_encrypted` is as for `replay_response`.
    """
    if is_cut_off(item):
        return None
    renewed = item.get("type") in _WITHOUT_ID
    made = {key: value for key, value in item.items() if not (renewed and key in ("id", "status"))}
    return made if keeps_encrypted and _has_content(made) else _drop_encrypted_content(made)


def _drop_encrypted_content(item: JsonObject) -> JsonObject | None:
    """The item without encrypted content; None for reasoning that has nothing else."""
    made = {key: value for key, value in item.items() if key != "encrypted_content"}
    return made if _has_content(made) else None


def _has_content(item: JsonObject) -> bool:
    return item.get("type") != "reasoning" or any(item.get(key) for key in _REASONING_KEYS)


def is_cut_off(item: JsonObject) -> bool:
    """Whether the item is a call that its provider did not complete. A shell may be in progress at the client."""
    kind, status = item.get("type"), item.get("status")
    return (
        kind in _CALLS and status not in (None, "completed") and not (kind in BUILT_IN_CALLS and status != "incomplete")
    )


def has_encrypted_content(item: JsonObject) -> bool:
    """Whether the item has content that only its provider can read."""
    return bool(item.get("encrypted_content"))


def find_repeated_items(before: list[StoredResponse], new: list[tuple[int, JsonObject]]) -> frozenset[int]:
    """The positions of new items that only repeat what the continued responses were given. Some agents resend it all.

    A result repeats if its call has the same result already. Other items repeat only together: if the new input begins
    with the whole earlier input, and further results follow it. `new` are the new items with their positions.
    """
    earlier = [item for record in before for item in record.input]
    answers = {_read_call_id(item): item.get("output") for item in earlier if item.get("type") in _RESULTS}
    count, repeated = len(earlier), set[int]()
    if count < len(new) and new[count][1].get("type") in _RESULTS:
        resent = [_without_ids(item) for _, item in new[:count]]
        if resent == [_without_ids(item) for item in earlier]:
            repeated |= {position for position, _ in new[:count]}
    for position, item in new:
        call_id = _read_call_id(item)
        if item.get("type") in _RESULTS and call_id in answers and answers[call_id] == item.get("output"):
            repeated.add(position)
    return frozenset(repeated)


def _read_call_id(item: JsonObject) -> object:
    """The id of a call, or of the call that a result answers."""
    return read_result(item)[0] if item.get("type") in BUILT_IN_RESULTS else item.get("call_id")


def _without_ids(item: JsonObject) -> JsonObject:
    made = {key: value for key, value in item.items() if key not in ("id", "status")}
    return {"type": "message", **made} if "role" in made else made


def check_results(before: list[StoredResponse], new: list[tuple[int, JsonObject]]) -> None:
    """Check that every result answers a call, and that every call of the conversation has its result.

    `before` are the responses that the request continues, `new` its input items with their positions. Raises Fault.
    """
    calls: dict[object, bool] = {}  # call_id -> answered
    for record in before:
        for item in replay_response(record, keeps_encrypted=True):
            _match_call(item, calls)
    for i, item in new:
        if not _match_call(item, calls):
            text = f"input[{i}].call_id answers no call of this conversation"
            raise Fault("invalid_request", text, ("input", i, "call_id"), item.get("call_id"), code="invalid_value")
    for call_id, answered in calls.items():
        if not answered:
            text = f"the call {str(call_id)[:80]!r} of a previous response has no output in input"
            raise Fault("invalid_request", text, ("input",), code="invalid_value")


def _match_call(item: JsonObject, calls: dict[object, bool]) -> bool:
    """Record a call, or that it has its result. Returns False for a result without a call."""
    kind, call_id = item.get("type"), _read_call_id(item)
    if kind in _CALLS:
        calls.setdefault(call_id, not runs_at_client(item))
    elif kind in _RESULTS:
        if call_id not in calls:
            return False
        calls[call_id] = True
    return True
