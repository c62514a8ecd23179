"""Each dialect's own form of an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from .answers import Json
from .forms import as_json
from .wire import Reply

__all__ = [
    "Problem",
    "azure",
    "databricks",
    "json_reply",
    "mindie",
    "native",
    "native_event",
    "openai",
    "phrase",
    "text_reply",
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


def native(dialect: str, profile: str, problem: Problem) -> Reply:
    """The problem as that dialect's service would put it."""
    reply = _WRITERS[dialect](problem, profile)
    return Reply(reply.status, {**reply.headers, **problem.headers}, reply.steps)


def native_event(dialect: str, profile: str, problem: Problem) -> bytes:
    """The same as JSON text inside a stream; Azure nests it there, the others use the body of their replies."""
    if dialect == "azure":
        return as_json({"error": {"code": "InternalServerError", "message": problem.message, "status": problem.status}})
    steps = native(dialect, profile, problem).steps
    return b"".join(step for step in steps if isinstance(step, bytes))


def json_reply(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, {"Content-Type": "application/json", **(headers or {})}, (as_json(body),))


def text_reply(status: int, text: str, kind: str = "text/plain; charset=utf-8") -> Reply:
    return Reply(status, {"Content-Type": kind}, (text.encode(),))


def phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Overloaded"


_OPENAI_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
_OPENAI_TYPES = {403: "permission_error", 429: "rate_limit_error"}
_DATABRICKS_CODES = {
    400: "INVALID_PARAMETER_VALUE",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    413: "BAD_REQUEST",
    422: "INVALID_PARAMETER_VALUE",
    429: "REQUEST_LIMIT_EXCEEDED",
    500: "INTERNAL_ERROR",
    504: "DEADLINE_EXCEEDED",
}
_AZURE_NAMED = (401, 404, 429)
_MINDIE_LABELS = {
    404: "NotFoundError",
    422: "Input Validation Error",
    424: "Generation Error",
    500: "Incomplete Generation",
}


def openai(problem: Problem, _profile: str) -> Reply:
    usual = "server_error" if problem.status >= 500 else "invalid_request_error"
    error = {
        "message": f"Invalid '{problem.param}': {problem.message}" if problem.path else problem.message,
        "type": _OPENAI_TYPES.get(problem.status, usual),
        "param": problem.param or None,
        "code": problem.code or _OPENAI_CODES.get(problem.status),
    }
    return json_reply(problem.status, {"error": error})


def databricks(problem: Problem, _profile: str) -> Reply:
    unavailable = "TEMPORARILY_UNAVAILABLE" if problem.status >= 500 else "BAD_REQUEST"
    code = problem.code or _DATABRICKS_CODES.get(problem.status, unavailable)
    message = f"{problem.param}: {problem.message}" if problem.path else problem.message
    return json_reply(problem.status, {"error_code": code, "message": message})


def azure(problem: Problem, profile: str) -> Reply:
    code = problem.code or phrase(problem.status).lower().replace(" ", "_")
    body: Json = {"error": phrase(problem.status), "message": problem.message, "status": problem.status}
    if problem.status == 422:
        where = {"loc": ["body", *map(str, problem.path)]}
        code = problem.code or "parameter_not_supported"
        if profile == "documented":
            body |= {"code": code, "detail": {**where, "value": _as_text(problem.value)}}
        else:
            body = {"status": 422, "code": code, "detail": {**where, "input": problem.value}}
            body["message"] = f"One of the parameters contain invalid values. {problem.message}"
    elif problem.status not in _AZURE_NAMED:
        body |= {"code": code, "param": problem.param or None}
    return json_reply(problem.status, body, {"x-ms-error-code": code})


def mindie(problem: Problem, _profile: str) -> Reply:
    if problem.status == 413:
        return json_reply(413, {"message": problem.message})
    message = f"{problem.param}: {problem.message}" if problem.path else problem.message
    label = problem.code or _MINDIE_LABELS.get(problem.status, phrase(problem.status))
    return json_reply(problem.status, {"error": message, "error_type": label})


_WRITERS: dict[str, Callable[[Problem, str], Reply]] = {
    "openai": openai,
    "databricks": databricks,
    "azure": azure,
    "mindie": mindie,
}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
