"""Checks of errors in the native form of each dialect."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from dragoman.contract.json_path import ABSENT, find_value
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.outcome import Outcome

from .bodies import find_schema_problems
from .rule import Problems, Rule, shorten

__all__ = ["ERROR_CHECKS"]

_TEXT = {"type": "string", "minLength": 1}
_MESSAGE_PATHS: Mapping[str, tuple[str, ...]] = {
    "openai": ("error.message",),
    "databricks": ("message",),
    "azure": ("message", "error.message", "detail", "detail[0].msg"),
    "mindie": ("error",),
}


def _message(dialect: str, body: JsonValue) -> str:
    found = (find_value(body, path) for path in _MESSAGE_PATHS[dialect])
    return next((text for text in found if isinstance(text, str)), "")


def _check_shape(outcome: Outcome, _: JsonValue) -> Problems:
    """The body is the dialect's own error, as JSON, with a message."""
    kind = (outcome.response.header("content-type") or "").split(";")[0]
    problems = [] if kind.endswith("json") else [f"content-type is {kind or 'missing'}"]
    problems += find_schema_problems(
        f"{outcome.dialect}/{_schema_protocol(outcome)}.error", outcome.profile, outcome.body
    )
    return problems + ([] if _message(outcome.dialect, outcome.body).strip() else ["the error has no message"])


def _schema_protocol(outcome: Outcome) -> str:
    return "responses" if outcome.protocol == "responses" and outcome.dialect in ("openai", "databricks") else "chat"


def _check_names_field(outcome: Outcome, wanted: str) -> Problems:
    """The error names the wrong field, in the dialect's field for it or in its message."""
    fields = _FIELD_READERS[outcome.dialect](outcome.body)
    leaf = wanted.split(".")[-1].split("[")[0]
    named = any(field == wanted or leaf in re.split(r"[.\[\]]+", field) for field in fields)
    if named or re.search(rf"\b{re.escape(leaf)}\b", _message(outcome.dialect, outcome.body)):
        return []
    return [f"the error does not name {wanted}: {shorten(outcome.text, 200)}"]


def _check_param(outcome: Outcome, wanted: str) -> Problems:
    fields = _FIELD_READERS[outcome.dialect](outcome.body)
    return [] if wanted in fields else [f"the error names {', '.join(fields) or 'nothing'}, expected {wanted}"]


def _read_openai_fields(body: JsonValue) -> list[str]:
    found = find_value(body, "error.param")
    return [found] if isinstance(found, str) else []


def _read_azure_fields(body: JsonValue) -> list[str]:
    loc = find_value(body, "detail.loc")
    if not isinstance(loc, list):
        return []
    parts = loc[1:] if loc[:1] == ["body"] else loc
    return [_join_path(parts), *(str(part) for part in loc)]


def _join_path(parts: list[JsonValue]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.lstrip(".")


def _read_no_fields(body: JsonValue) -> list[str]:
    return []


_FIELD_READERS: Mapping[str, Callable[[JsonValue], list[str]]] = {
    "openai": _read_openai_fields,
    "azure": _read_azure_fields,
    "databricks": _read_no_fields,
    "mindie": _read_no_fields,
}


def _check_code(outcome: Outcome, pattern: str) -> Problems:
    paths = ("error.code", "error.type", "error_code", "code", "error_type", "status")
    codes = [str(value) for path in paths if (value := find_value(outcome.body, path)) not in (ABSENT, None)]
    return (
        []
        if any(re.search(pattern, code) for code in codes)
        else [f"the error's codes are {codes}, none matches {pattern!r}"]
    )


def _check_message(outcome: Outcome, pattern: str) -> Problems:
    message = _message(outcome.dialect, outcome.body)
    return [] if re.search(pattern, message, re.IGNORECASE) else [f"the error's message is {shorten(message, 200)}"]


def _check_error_event(outcome: Outcome, _: JsonValue) -> Problems:
    """A stream that fails ends with one error event."""
    bodies = [event.body for event in outcome.events if isinstance(event.body, dict)]
    errors = [body for body in bodies if _is_error(outcome.protocol, body)]
    if not errors:
        return ["the stream has no error event"]
    problems = [] if _is_error(outcome.protocol, bodies[-1]) else ["an event follows the error event"]
    return problems + (["the stream ends with [DONE]"] if _has_chat_done(outcome) else [])


def _has_chat_done(outcome: Outcome) -> bool:
    return outcome.protocol != "responses" and any(event.data == "[DONE]" for event in outcome.events)


def _is_error(protocol: str, body: JsonObject) -> bool:
    if protocol == "responses":
        return body.get("type") in ("error", "response.failed")
    return "choices" not in body and any(key in body for key in ("error", "error_code", "detail"))


ERROR_CHECKS: Mapping[str, Rule] = {
    "error_shape": Rule("the body is the dialect's own error, as JSON, with a message", _check_shape),
    "error_names": Rule(
        "the error names the wrong field, in the dialect's field for it or in its message", _check_names_field, _TEXT
    ),
    "error_param": Rule("the dialect's field for the path of the wrong field has that path", _check_param, _TEXT),
    "error_code": Rule("one of the error's codes matches", _check_code, _TEXT),
    "error_says": Rule("the error's message matches, ignoring case", _check_message, _TEXT),
    "error_event": Rule("the stream ends with one error event", _check_error_event),
}
