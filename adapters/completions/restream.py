"""A whole completions reply as the chunks of a stream, for a provider that answers whole although a stream was asked
for."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject

__all__ = ["restream_text"]


def restream_text(reply: JsonObject, with_usage: bool = False) -> list[JsonObject]:
    """Hub chunks that add up to a hub reply: one for each choice, then the usage, if asked for."""
    envelope = {key: value for key, value in reply.items() if key not in ("choices", "usage")}
    said = {**envelope, "usage": None} if with_usage else envelope
    chunks: list[JsonObject] = [{**said, "choices": [choice]} for choice in reply["choices"]]
    if with_usage and reply.get("usage"):
        chunks.append({**envelope, "choices": [], "usage": reply["usage"]})
    return chunks
