"""Writes spoken answers of earlier turns: OpenAI's API finds the audio by its id, other providers get its transcript.

Source: OpenAI OpenAPI 2.3, ChatCompletionRequestAssistantMessage.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path

from .messages import Messages, convert_messages

__all__ = ["write_transcripts"]

_BY_ID = "the provider finds it by its id"
_AS_TEXT = "the provider gets what was said as text"
_UNKNOWN = "it has neither an id nor a transcript"


def write_transcripts(messages: Messages, ctx: Context, *, reads_ids: bool = False) -> Messages:
    """Turn the audio of the assistant's messages into text, if it has a transcript.

    A provider that `reads_ids` gets no more than the id. For any other, audio with an id and without a transcript
    stays: what happens to it is decided where the target's API is known.
    """

    def convert(message: JsonObject, path: Path) -> JsonObject:
        audio, place = message["audio"], (*path, "audio")
        text, content = audio.get("transcript"), (*path, "content")
        if audio.get("id") and reads_ids:
            ctx.receipt.record_conversion(place, _BY_ID)
            return {**message, "audio": {"id": audio["id"]}}
        if audio.get("id") and not text:
            return message
        rest = {key: value for key, value in message.items() if key != "audio"}
        if message.get("content") or not text:
            ctx.receipt.record_drop(place, _AS_TEXT if text else _UNKNOWN)
            return rest
        ctx.receipt.record_conversion(place, _AS_TEXT, "loss", after=content)
        ctx.receipt.map_paths([(place, content)])
        return {**rest, "content": text}

    spoken = [i for i, message in enumerate(messages) if _has_more_than_id(message.get("audio"))]
    return convert_messages(messages, spoken, convert)


def _has_more_than_id(audio: Any) -> bool:
    """Whether this is audio without an id, or with more than its id."""
    return bool(audio) and (not audio.get("id") or len(audio) > 1)
