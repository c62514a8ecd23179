"""Turns a whole completions reply into the chunks of a stream, if the client asked for a stream and the provider sent
none."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject

__all__ = ["restream_text"]


def restream_text(reply: JsonObject, with_usage: bool = False) -> list[JsonObject]:
    """Split a hub reply into hub chunks: one for each choice, then the usage.

    `with_usage`: the client asked for a usage chunk.
    """
    envelope = {key: value for key, value in reply.items() if key not in ("choices", "usage")}
    said = {**envelope, "usage": None} if with_usage else envelope
    chunks: list[JsonObject] = [{**said, "choices": [choice]} for choice in reply["choices"]]
    if with_usage and reply.get("usage"):
        chunks.append({**envelope, "choices": [], "usage": reply["usage"]})
    return chunks
