"""Decides from its first bytes what the body of a reply is: events of a stream, or one JSON value.

Servers label bodies wrongly: server-sent events come as text/plain, application/json or octet-stream, and whole replies
come as text/event-stream. So the bytes decide, and the label only where they leave it open:

    first line that is not blank                        labelled as events    labelled as anything else, or not at all
    --------------------------------------------------  --------------------  ----------------------------------------
    a field of an event (`data: ...`) or a comment      events                events
    a whole JSON value, alone on its line               events (1)            json
    the beginning of a JSON value                       json                  json
    any other text                                      events: stray text    json: it is reported as no JSON

(1) If the client asked for no stream, only if another line follows: one value alone is the whole reply.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import orjson

from dragoman.adapters.sse import FIELDS

__all__ = ["BodyForm", "detect_form"]

BodyForm: TypeAlias = Literal["events", "json"]

_SKIPPED = b"\xef\xbb\xbf \t\r\n"
_FIELD = re.compile(rb"(?:%s)?:|(?:%s)\r?\n" % (b"|".join(FIELDS), b"|".join(FIELDS)))
_LONGEST_FIELD = max(map(len, FIELDS))


def detect_form(
    data: bytes, *, labelled_events: bool, wants_stream: bool = True, ended: bool = False
) -> BodyForm | None:
    """The form of a body that begins with `data`; None if more bytes are needed. `ended`: no more bytes follow."""
    text = data.lstrip(_SKIPPED)
    if not text and not ended:
        return None
    if text[:1] in (b"{", b"["):
        return _detect_json(text, wants_stream, ended) if labelled_events else "json"
    if _FIELD.match(text):
        return "events"
    if len(text) <= _LONGEST_FIELD and not ended and _may_begin_field(text):
        return None
    return "events" if labelled_events else "json"


def _detect_json(text: bytes, wants_stream: bool, ended: bool) -> BodyForm | None:
    line, line_end, rest = text.partition(b"\n")
    if not line_end and not ended:
        return None
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return "json"
    if wants_stream or rest.strip():
        return "events"
    return "json" if ended else None


def _may_begin_field(text: bytes) -> bool:
    return any(field.startswith(text.rstrip(b"\r")) for field in FIELDS)
