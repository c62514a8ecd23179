"""What a request's `response_format` asks for, and whether a text is that."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import lookup
from dragoman.adapters.reply_check.schema_judge import can_judge, find_violation

__all__ = ["JsonFormat", "parse_json", "read_format", "strip_fence"]

_FENCE = "```"
_FENCE_LABELS = ("", "json", "json5", "jsonc")


class JsonFormat(NamedTuple):
    """A format of JSON. `schema` is None for `json_object`: any object."""

    schema: Any = None
    description: str | None = None
    strict: bool = False

    def find_problem(self, text: str) -> str | None:
        """Describe why a text is not of this format, without quoting it; None if it is, or if the schema cannot judge
        it."""
        value = parse_json(text)
        if value is None:
            return "it is not JSON"
        (found,) = value
        if self.schema is None:
            return None if isinstance(found, dict) else "it is not a JSON object"
        return find_violation(found, self.schema, len(text))

    def can_judge(self, text: str) -> bool:
        """Whether the schema is small enough to judge a text."""
        return self.schema is None or can_judge(self.schema, len(text))


def read_format(request: JsonObject) -> JsonFormat | None:
    """The JSON format of a chat request; None for another one."""
    form = request.get("response_format")
    kind = lookup(form, ("type",))
    if kind == "json_object":
        return JsonFormat()
    described = lookup(form, ("json_schema",))
    if kind != "json_schema" or not isinstance(described, dict):
        return None
    schema, about = described.get("schema"), described.get("description")
    return JsonFormat({} if schema is None else schema, about or None, described.get("strict") is True)


def parse_json(text: str) -> tuple[Any] | None:
    """The JSON value of a text, in a tuple; None if it is not JSON."""
    try:
        return (orjson.loads(text),)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None


def strip_fence(text: str) -> str:
    """The JSON between the first code fence of a text and the last one; the text itself if it is JSON, or if there is
    no JSON between them."""
    start, end = text.find(_FENCE) + len(_FENCE), text.rfind(_FENCE)
    if end < start or parse_json(text) is not None:
        return text
    inside = text[start:end]
    label, newline, body = inside.partition("\n")
    if newline and label.strip().lower() in _FENCE_LABELS:
        inside = body
    return inside.strip() if parse_json(inside) is not None else text
