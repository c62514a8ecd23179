"""Writes spoken answers for those who cannot hear them: what was said is their text.

Of earlier turns OpenAI's API finds the audio by its id; other providers get its transcript. So do clients of other
protocols than chat, of a new answer.

Source: OpenAI OpenAPI 2.3, ChatCompletionRequestAssistantMessage, ChatCompletionResponseMessage.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path

from .messages import Messages, convert_messages

__all__ = ["replace_audio", "write_transcripts"]

_BY_ID = "the provider finds it by its id"
_AS_TEXT = "what was said is sent as text"
_UNKNOWN = "it has no transcript"


def write_transcripts(messages: Messages, ctx: Context, *, reads_ids: bool = False) -> Messages:
    """Turn the audio of the assistant's messages into text, if it has a transcript.

    A provider that `reads_ids` gets no more than the id. For any other, audio with an id and without a transcript
    stays: what happens to it is decided where the target's API is known.
    """

    def convert(message: JsonObject, path: Path) -> JsonObject:
        audio, place = message["audio"], (*path, "audio")
        if audio.get("id") and reads_ids:
            ctx.receipt.record_conversion(place, _BY_ID)
            return {**message, "audio": {"id": audio["id"]}}
        if audio.get("id") and not audio.get("transcript"):
            return message
        made = replace_audio(message, path, ctx)
        if made.get("content") != message.get("content"):
            ctx.receipt.map_paths([(place, (*path, "content"))])
        return made

    spoken = [i for i, message in enumerate(messages) if _has_more_than_id(message.get("audio"))]
    return convert_messages(messages, spoken, convert)


def replace_audio(message: JsonObject, path: Path, ctx: Context, *, has_text: bool = False) -> JsonObject:
    """The message, or delta, with the transcript of its audio as its text, if no text says the same.

    `has_text`: the deltas before it have one. The audio is a recorded loss.
    """
    text = message["audio"].get("transcript")
    rest = {key: value for key, value in message.items() if key != "audio"}
    if not isinstance(text, str) or not text:
        ctx.receipt.record_drop((*path, "audio"), _UNKNOWN)
    elif has_text or message.get("content"):
        ctx.receipt.record_drop((*path, "audio"), _AS_TEXT)
    else:
        ctx.receipt.record_conversion((*path, "audio"), _AS_TEXT, "loss", after=(*path, "content"))
        rest["content"] = text
    return rest


def _has_more_than_id(audio: Any) -> bool:
    """Whether this is audio without an id, or with more than its id."""
    return bool(audio) and (not audio.get("id") or len(audio) > 1)
