"""Turns a whole chat reply into the chunks of a stream, if the client asked for a stream and the provider sent none."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.adapters.call import JsonObject

__all__ = ["restream"]


def restream(reply: JsonObject, with_usage: bool = False) -> list[JsonObject]:
    """Split a hub reply into hub chunks: for each choice its message, then its finish reason; then the usage.

    `with_usage`: the client asked for a usage chunk.
    """
    shared = {key: value for key, value in reply.items() if key not in ("choices", "usage")}
    envelope = {**shared, "object": "chat.completion.chunk"}
    if with_usage:
        envelope["usage"] = None
    chunks = [{**envelope, "choices": [part]} for choice in reply["choices"] for part in _split_choice(choice)]
    if with_usage and reply.get("usage"):
        chunks.append({**envelope, "choices": [], "usage": reply["usage"]})
    return chunks


def _split_choice(choice: JsonObject) -> Iterator[JsonObject]:
    message = choice["message"]
    delta = {key: value for key, value in message.items() if value is not None and key != "tool_calls"}
    if message.get("tool_calls"):
        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(message["tool_calls"])]
    first = {"index": choice["index"], "delta": delta, "finish_reason": None}
    if choice.get("logprobs") is not None:
        first["logprobs"] = choice["logprobs"]
    yield first
    rest = {key: value for key, value in choice.items() if key not in ("message", "logprobs")}
    yield {**rest, "delta": {}}
