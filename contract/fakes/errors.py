"""Each dialect's own form of an error, from its templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from dragoman.contract.dialects import Errors, dialect
from dragoman.contract.values import filled

from .forms import as_json
from .wire import Reply

__all__ = [
    "Problem",
    "json_reply",
    "native",
    "native_event",
    "phrase",
    "text_reply",
    "unknown_path",
    "wrong_version",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """An error before its dialect. `code` is the dialect's own word; empty means the usual one for the status."""

    status: int
    message: str
    path: tuple[str | int, ...] = ()
    value: Any = None
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def param(self) -> str:
        """The path as `messages[0].role`."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).lstrip(".")


def native(name: str, profile: str, problem: Problem) -> Reply:
    """The problem as that dialect's service would put it."""
    errors = dialect(name).errors
    form = next(
        form
        for form in errors.forms
        if problem.status in form.get("status", (problem.status,)) and form.get("profile", profile) == profile
    )
    return _reply(form, errors, problem)


def wrong_version(name: str, message: str) -> Reply:
    """The service's answer to a query that lacks something."""
    errors = dialect(name).errors
    return _reply(errors.version or errors.forms[-1], errors, Problem(400, message))


def unknown_path(name: str, message: str) -> Reply:
    """The service's answer at an address that it does not have."""
    said = dialect(name).errors.unknown_path
    if said.get("empty"):
        return Reply(404, {}, (b"",))
    return native(name, "actual", Problem(404, message, code=said.get("code", "")))


def native_event(name: str, profile: str, problem: Problem) -> bytes:
    """The same as JSON text inside a stream: the dialect's own form for that, else the body of a reply."""
    errors = dialect(name).errors
    if errors.event is not None:
        return as_json(filled(errors.event, _values(errors, problem)))
    steps = native(name, profile, problem).steps
    return b"".join(step for step in steps if isinstance(step, bytes))


def json_reply(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, {"Content-Type": "application/json", **(headers or {})}, (as_json(body),))


def text_reply(status: int, text: str, kind: str = "text/plain; charset=utf-8") -> Reply:
    return Reply(status, {"Content-Type": kind}, (text.encode(),))


def phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Overloaded"


def _reply(form: Mapping[str, Any], errors: Errors, problem: Problem) -> Reply:
    values = _values(errors, problem)
    headers = {**filled(dict(form.get("headers", {})), values), **problem.headers}
    return json_reply(problem.status, filled(form["body"], values), headers)


def _values(errors: Errors, problem: Problem) -> dict[str, Any]:
    """What a template may ask for."""
    values: dict[str, Any] = {
        "status": problem.status,
        "phrase": phrase(problem.status),
        "slug": phrase(problem.status).lower().replace(" ", "_"),
        "message": problem.message,
        "param": problem.param or None,
        "loc": ["body", *map(str, problem.path)],
        "value": problem.value,
        "text": _as_text(problem.value),
        "located": problem.message,
    }
    if problem.path:
        values["located"] = filled(errors.located, values)
    values["code"] = problem.code or _by_status(errors.codes, problem.status, values)
    values["type"] = _by_status(errors.types, problem.status, values)
    return values


def _by_status(words: Mapping[str, str], status: int, values: Mapping[str, Any]) -> str | None:
    """The word for a status, for its hundred, or for all others."""
    keys = (str(status), f"{status // 100}xx", "else")
    found = next((words[key] for key in keys if key in words), None)
    return None if found is None else str(filled(found, values))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
