"""Instructions that dragoman adds to the messages of a chat request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.fit import drop_or_reject
from dragoman.adapters.opt_ins import OptIns

__all__ = ["add_instruction", "add_text", "ask_again", "drop_stream", "leave_out", "make_correction"]

_SYSTEM = ("system", "developer")


def add_instruction(messages: list[JsonObject], text: str, receipt: Receipt | None = None) -> list[JsonObject]:
    """The messages with an instruction: in the first message if that is the system's, else in a new one before it.

    `receipt` gets the new places of the messages.
    """
    first = messages[0] if messages else {}
    if first.get("role") in _SYSTEM and isinstance(first.get("content"), str | list):
        return [{**first, "content": add_text(first["content"], text)}, *messages[1:]]
    if receipt is not None:
        receipt.map_paths([(("messages", i), ("messages", i + 1)) for i in range(len(messages))])
    return [{"role": "system", "content": text}, *messages]


def add_text(content: str | list[Any] | None, text: str) -> str | list[Any]:
    """The content of a message, with a text at its end."""
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    return f"{content}\n\n{text}" if content else text


def ask_again(request: JsonObject, answer: str, correction: str) -> JsonObject:
    """The request for a further answer, after an answer that is not valid."""
    said = [{"role": "assistant", "content": answer}] if answer else []
    return {**request, "messages": [*request["messages"], *said, {"role": "user", "content": correction}]}


def make_correction(problem: str, wish: str) -> str:
    """What dragoman tells the model about an answer that is not valid."""
    return f"Your last answer cannot be used: {problem}. Answer again. {wish}"


def drop_stream(request: JsonObject) -> JsonObject:
    """The request for a whole reply, which is held until it is valid."""
    return {key: value for key, value in request.items() if key not in ("stream", "stream_options")}


def leave_out(ctx: Context, field: str, obstacle: str) -> list[Context]:
    """The context without a field that cannot be emulated. Raises Fault unless the policy is to drop it."""
    request = dict(ctx.request)
    bare = ctx._replace(target=replace(ctx.target, opt_ins=OptIns()))
    drop_or_reject(request, (field,), bare, f"the target does not have it; {obstacle}")
    return [ctx._replace(request=request)]
