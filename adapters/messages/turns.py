"""Checks that calls and results of a Messages conversation belong together.

Messages of one role in a row are one turn; messages with the role `system` are between the turns. Each `tool_use` of an
assistant's turn has one `tool_result` in the user's turn after it, and each result has its call in the turn before.

A request that continues a conversation which the server keeps holds only its last turns, so it is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

__all__ = ["check_turns"]

_SHOWN = 5  # ids in a message


@dataclass(slots=True)
class _Turn:
    role: str
    path: Path
    """The path of its last message."""
    calls: dict[str, Path] = field(default_factory=dict)
    results: dict[str, Path] = field(default_factory=dict)


def check_turns(body: JsonObject) -> Iterator[Fault]:
    """Yield a fault for each call without a result, and for each result without a call. The body is valid.

    Raises Fault for blocks that are not where they may be.
    """
    if (body.get("thread") or {}).get("type") == "continue":
        return
    if list not in [type(message["content"]) for message in body["messages"]]:
        return  # only blocks are calls and results
    before = _Turn("user", ())
    for turn in _list_turns(body["messages"]):
        yield from _compare(before, turn)
        before = turn
    yield from _compare(before, _Turn("user", ()))


def _compare(before: _Turn, turn: _Turn) -> Iterator[Fault]:
    missing = [one for one in before.calls if one not in turn.results]
    if missing:
        ids = ", ".join(one[:64] for one in missing[:_SHOWN])
        text = (
            f"tool_use ids were found without tool_result blocks immediately after: {ids}. Each tool_use block must "
            "have a corresponding tool_result block in the next message"
        )
        yield _refuse(text, before.path)
    for one, path in turn.results.items():
        if one not in before.calls:
            text = (
                f"unexpected tool_use_id found in tool_result blocks: {one[:64]}. Each tool_result block must have a "
                "corresponding tool_use block in the previous message"
            )
            yield _refuse(text, (*path, "tool_use_id"))


def _list_turns(messages: list[JsonObject]) -> Iterator[_Turn]:
    turn: _Turn | None = None
    for i, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if role == "system":
            continue
        if turn is None or turn.role != role:
            if turn is not None:
                yield turn
            turn = _Turn(role, ())
        turn.path = ("messages", i)
        for k, block in enumerate(content) if isinstance(content, list) else ():
            _add_block(turn, block, ("messages", i, "content", k))
    if turn is not None:
        yield turn


def _add_block(turn: _Turn, block: JsonObject, path: Path) -> None:
    """Add a call or a result to its turn. Raises Fault if the turn's role cannot have it, or a call has two results."""
    if block["type"] == "tool_use":
        if turn.role != "assistant":
            raise _refuse("tool_use blocks can only be in assistant messages", path)
        turn.calls[block["id"]] = path
    elif block["type"] == "tool_result":
        if turn.role != "user":
            raise _refuse("tool_result blocks can only be in user messages", path)
        call_id = block["tool_use_id"]
        if call_id in turn.results:
            text = f"each tool_use must have a single result: several tool_result blocks have the id {call_id[:64]}"
            raise _refuse(text, (*path, "tool_use_id"))
        turn.results[call_id] = path


def _refuse(text: str, path: Path) -> Fault:
    return Fault("invalid_request", text, path, code="invalid_value")
