"""The limit on the characters of all messages together, which JSON Schema cannot express: `x-max-characters`."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.chat.messages import extract_text
from dragoman.adapters.faults import Fault, Kind
from dragoman.adapters.validation import Validator

__all__ = ["check_length"]


def check_length(messages: list[JsonObject], rules: Validator, kind: Kind = "invalid_request") -> None:
    """Check the length of the texts of a chat request. Raises Fault of that kind if they are too long."""
    most = rules.schema["properties"]["messages"].get("x-max-characters")
    if most is None:
        return
    characters = sum(len(extract_text(message.get("content"))) for message in messages)
    if characters > most:
        text = f"messages must have at most {most} characters, got {characters}"
        raise Fault(kind, text, ("messages",), code="string_above_max_length")
