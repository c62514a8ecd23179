"""The error form of each dialect: one writer fills the dialect's templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from dragoman.contract.dialects import ErrorForms, load_dialect
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.placeholders import fill_placeholders

from .forms import serialize_json
from .wire import Reply

__all__ = [
    "Problem",
    "build_json_reply",
    "build_text_reply",
    "reason_phrase",
    "write_error",
    "write_error_event",
    "write_unknown_path",
    "write_wrong_version",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """An error before a dialect writes it. `path` and `value` are those of the wrong field. `code` is the dialect's own
    code; empty means the usual code of the status."""

    status: int
    message: str
    path: tuple[str | int, ...] = ()
    value: Any = None
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def param(self) -> str:
        """The path, as `messages[0].role`."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).lstrip(".")


def write_error(dialect: str, profile: str, problem: Problem) -> Reply:
    """Write the error as the service of the dialect does."""
    errors = load_dialect(dialect).errors
    form = next(
        form
        for form in errors.forms
        if problem.status in form.get("status", (problem.status,)) and form.get("profile", profile) == profile
    )
    return _fill_form(form, errors, problem)


def write_wrong_version(dialect: str, message: str) -> Reply:
    """Write the error about a missing or wrong version in the query."""
    errors = load_dialect(dialect).errors
    return _fill_form(errors.version or errors.forms[-1], errors, Problem(400, message))


def write_unknown_path(dialect: str, message: str) -> Reply:
    """Write the error at a path that the service does not have."""
    unknown_path = load_dialect(dialect).errors.unknown_path
    if unknown_path.get("empty"):
        return Reply(404, {}, (b"",))
    return write_error(dialect, "actual", Problem(404, message, code=unknown_path.get("code", "")))


def write_error_event(dialect: str, profile: str, problem: Problem) -> bytes:
    """Write the error as JSON text for a stream: in the dialect's form for streams, else as the body of a reply."""
    errors = load_dialect(dialect).errors
    if errors.event is not None:
        return serialize_json(fill_placeholders(errors.event, _template_values(errors, problem)))
    steps = write_error(dialect, profile, problem).steps
    return b"".join(step for step in steps if isinstance(step, bytes))


def build_json_reply(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, {"Content-Type": "application/json", **(headers or {})}, (serialize_json(body),))


def build_text_reply(status: int, text: str, kind: str = "text/plain; charset=utf-8") -> Reply:
    return Reply(status, {"Content-Type": kind}, (text.encode(),))


def reason_phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Overloaded"


def _fill_form(form: Mapping[str, JsonValue], errors: ErrorForms, problem: Problem) -> Reply:
    values = _template_values(errors, problem)
    headers = {**fill_placeholders(dict(form.get("headers", {})), values), **problem.headers}
    return build_json_reply(problem.status, fill_placeholders(form["body"], values), headers)


def _template_values(errors: ErrorForms, problem: Problem) -> JsonObject:
    """The values of the placeholders in a template."""
    values: JsonObject = {
        "status": problem.status,
        "phrase": reason_phrase(problem.status),
        "slug": reason_phrase(problem.status).lower().replace(" ", "_"),
        "message": problem.message,
        "param": problem.param or None,
        "loc": ["body", *map(str, problem.path)],
        "dotted": ".".join(map(str, problem.path)),
        "value": problem.value,
        "text": _as_text(problem.value),
        "located": problem.message,
    }
    if problem.path:
        values["located"] = fill_placeholders(errors.located, values)
    values["code"] = problem.code or _select_by_status(errors.codes, problem.status, values)
    values["type"] = _select_by_status(errors.types, problem.status, values)
    return values


def _select_by_status(texts: Mapping[str, str], status: int, values: JsonObject) -> str | None:
    """Select the text for a status, for its class such as `5xx`, or for all others."""
    keys = (str(status), f"{status // 100}xx", "else")
    found = next((texts[key] for key in keys if key in texts), None)
    return None if found is None else str(fill_placeholders(found, values))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
