"""Checks of errors in the native form of each dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_path import ABSENT, find_value
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.outcome import Outcome
from dragoman.contract.schema_validation import has_schema

from .bodies import find_schema_problems
from .rule import Problems, Rule, shorten

__all__ = ["ERROR_CHECKS"]

_LABELS = ("code", "type", "param", "status", "error_code", "error_type")
"""The keys of an error whose absence and type only the cases `*/error-*` judge: one server makes them all wrong."""

_TEXT = {"type": "string", "minLength": 1}


def _message(dialect: str, body: JsonValue) -> str:
    found = (find_value(body, path) for path in load_dialect(dialect).errors.messages)
    return next((text for text in found if isinstance(text, str)), "")


def _check_shape(outcome: Outcome, _: JsonValue) -> Problems:
    """The body is the dialect's own error, as JSON, with a message."""
    kind = (outcome.response.header("content-type") or "").split(";")[0]
    problems = [] if kind.endswith("json") else [f"content-type is {kind or 'missing'}"]
    problems += find_schema_problems(f"{outcome.dialect}/{_schema_protocol(outcome)}.error", outcome, _LABELS)
    return problems + ([] if _message(outcome.dialect, outcome.body).strip() else ["the error has no message"])


def _schema_protocol(outcome: Outcome) -> str:
    """A protocol whose errors have no schema of their own has those of chat, or of the dialect's first protocol."""
    candidates = (outcome.protocol, "chat", *load_dialect(outcome.dialect).paths)
    return next(name for name in candidates if has_schema(f"{outcome.dialect}/{name}.error"))


def _check_names_field(outcome: Outcome, wanted: str) -> Problems:
    """The error names the wrong field, in the dialect's field for it or in its message."""
    fields = _read_fields(outcome.dialect, outcome.body)
    leaf = wanted.split(".")[-1].split("[")[0]
    named = any(field == wanted or leaf in re.split(r"[.\[\]]+", field) for field in fields)
    if named or re.search(rf"\b{re.escape(leaf)}\b", _message(outcome.dialect, outcome.body)):
        return []
    return [f"the error does not name {wanted}: {shorten(outcome.text, 200)}"]


def _check_param(outcome: Outcome, wanted: str) -> Problems:
    fields = _read_fields(outcome.dialect, outcome.body)
    return [] if wanted in fields else [f"the error names {', '.join(fields) or 'nothing'}, expected {wanted}"]


def _read_fields(dialect: str, body: JsonValue) -> list[str]:
    """Read the names of the wrong field: the error has a path as text, or as a list that may begin with `body`."""
    found = find_value(body, load_dialect(dialect).errors.param)
    if found is ABSENT:
        return _read_fastapi_fields(body)
    if isinstance(found, str):
        return [found]
    if not isinstance(found, list):
        return []
    parts = found[1:] if found[:1] == ["body"] else found
    return [_join_path(parts), *(str(part) for part in found)]


def _read_fastapi_fields(body: JsonValue) -> list[str]:
    """Read the paths of FastAPI's own errors. That their form is wrong, `error_shape` says."""
    details = body.get("detail") if isinstance(body, dict) else None
    paths = [one.get("loc") for one in details if isinstance(one, dict)] if isinstance(details, list) else []
    return [_join_path(path[1:] if path[:1] == ["body"] else path) for path in paths if isinstance(path, list)]


def _join_path(parts: list[JsonValue]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.lstrip(".")


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
    """A stream that fails ends with one error event. A reply that has the status of an error needs none."""
    if outcome.response.status >= 400:
        return []
    bodies = [event.body for event in outcome.events if isinstance(event.body, dict)]
    errors = [body for body in bodies if _is_error(outcome.protocol, body)]
    if not errors:
        return ["the stream has no error event"]
    return [] if _is_error(outcome.protocol, bodies[-1]) else ["an event follows the error event"]


def _is_error(protocol: str, body: JsonObject) -> bool:
    if protocol in ("responses", "messages"):
        return body.get("type") in ("error", "response.failed")
    return "choices" not in body and any(key in body for key in ("error", "error_code", "detail"))


ERROR_CHECKS: Mapping[str, Rule] = {
    "error_shape": Rule(
        "the body is the dialect's own error, as JSON, with a message; its codes may have any type",
        _check_shape,
        has_own_case=True,
    ),
    "error_names": Rule(
        "the error names the wrong field, in the dialect's field for it or in its message",
        _check_names_field,
        _TEXT,
        is_advice=True,
    ),
    "error_param": Rule("the dialect's field for the path of the wrong field has that path", _check_param, _TEXT),
    "error_code": Rule("one of the error's codes matches", _check_code, _TEXT),
    "error_says": Rule("the error's message matches, ignoring case", _check_message, _TEXT),
    "error_event": Rule(
        "the stream ends with one error event, unless the status is that of an error", _check_error_event
    ),
}
