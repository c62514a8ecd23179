"""Checks of errors, in the native form of each dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dragoman.contract.dialects import dialect
from dragoman.contract.judge import has_schema
from dragoman.contract.model import Json
from dragoman.contract.outcome import Outcome
from dragoman.contract.paths import ABSENT, at

from .bodies import fits
from .rule import Problems, Rule, short

__all__ = ["ERRORS"]

_TEXT = {"type": "string", "minLength": 1}


def _message(name: str, body: Any) -> str:
    found = (at(body, path) for path in dialect(name).errors.messages)
    return next((text for text in found if isinstance(text, str)), "")


def _shape(outcome: Outcome, _: Any) -> Problems:
    """The dialect's own error, told as JSON, with a message."""
    kind = (outcome.answer.header("content-type") or "").split(";")[0]
    problems = [] if kind.endswith("json") else [f"content-type is {kind or 'missing'}"]
    problems += fits(f"{outcome.dialect}/{_protocol(outcome)}.error", outcome.profile, outcome.body)
    return problems + ([] if _message(outcome.dialect, outcome.body).strip() else ["no message"])


def _protocol(outcome: Outcome) -> str:
    """Errors have one form in all protocols, but for those of Responses where the dialect has a schema of them."""
    return (
        "responses" if outcome.protocol == "responses" and has_schema(f"{outcome.dialect}/responses.error") else "chat"
    )


def _names(outcome: Outcome, wanted: str) -> Problems:
    """The error says which field is wrong, in the place that the dialect has for it, or in its message."""
    places = _places(outcome.dialect, outcome.body)
    leaf = wanted.split(".")[-1].split("[")[0]
    named = any(place == wanted or leaf in re.split(r"[.\[\]]+", place) for place in places)
    if named or re.search(rf"\b{re.escape(leaf)}\b", _message(outcome.dialect, outcome.body)):
        return []
    return [f"it does not name {wanted}: {short(outcome.text, 200)}"]


def _param(outcome: Outcome, wanted: str) -> Problems:
    places = _places(outcome.dialect, outcome.body)
    return [] if wanted in places else [f"it points at {', '.join(places) or 'nothing'}, expected {wanted}"]


def _places(name: str, body: Any) -> list[str]:
    """What the error points at: a path as text, or as a list that begins with `body`."""
    found = at(body, dialect(name).errors.place)
    if isinstance(found, str):
        return [found]
    if not isinstance(found, list):
        return []
    parts = found[1:] if found[:1] == ["body"] else found
    return [_joined(parts), *(str(part) for part in found)]


def _joined(parts: list[Any]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.lstrip(".")


def _code(outcome: Outcome, pattern: str) -> Problems:
    places = ("error.code", "error.type", "error_code", "code", "error_type", "status")
    told = [str(value) for place in places if (value := at(outcome.body, place)) not in (ABSENT, None)]
    return [] if any(re.search(pattern, word) for word in told) else [f"its codes are {told}, none matches {pattern!r}"]


def _says(outcome: Outcome, pattern: str) -> Problems:
    message = _message(outcome.dialect, outcome.body)
    return [] if re.search(pattern, message, re.IGNORECASE) else [f"its message is {short(message, 200)}"]


def _error_event(outcome: Outcome, _: Any) -> Problems:
    """A stream that fails says so in one event, in its last words."""
    bodies = [event.body for event in outcome.events if isinstance(event.body, dict)]
    errors = [body for body in bodies if _is_error(outcome.protocol, body)]
    if not errors:
        return ["the stream tells no error"]
    problems = [] if _is_error(outcome.protocol, bodies[-1]) else ["something follows the error"]
    return problems + (["the stream ends with [DONE]"] if _chat_done(outcome) else [])


def _chat_done(outcome: Outcome) -> bool:
    return outcome.protocol != "responses" and any(event.data == "[DONE]" for event in outcome.events)


def _is_error(protocol: str, body: Json) -> bool:
    if protocol == "responses":
        return body.get("type") in ("error", "response.failed")
    return "choices" not in body and any(key in body for key in ("error", "error_code", "detail"))


ERRORS: Mapping[str, Rule] = {
    "error_shape": Rule("the dialect's own error, as JSON, with a message", _shape),
    "error_names": Rule("the error says which field is wrong, in its place or in its message", _names, _TEXT),
    "error_param": Rule("the error's own place for a path holds that path", _param, _TEXT),
    "error_code": Rule("one of the error's codes matches", _code, _TEXT),
    "error_says": Rule("the error's message matches, in any case", _says, _TEXT),
    "error_event": Rule("the stream's last words are one error", _error_event),
}
