"""The error form of each dialect."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from dragoman.contract.json_types import JsonObject

from .forms import serialize_json
from .wire import Reply

__all__ = [
    "Problem",
    "build_json_reply",
    "build_text_reply",
    "reason_phrase",
    "write_azure_error",
    "write_databricks_error",
    "write_error",
    "write_error_event",
    "write_mindie_error",
    "write_openai_error",
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
    reply = _WRITERS[dialect](problem, profile)
    return Reply(reply.status, {**reply.headers, **problem.headers}, reply.steps)


def write_error_event(dialect: str, profile: str, problem: Problem) -> bytes:
    """Write the error as JSON text for a stream. Azure nests it there; other dialects send the body of a reply."""
    if dialect == "azure":
        return serialize_json(
            {"error": {"code": "InternalServerError", "message": problem.message, "status": problem.status}}
        )
    steps = write_error(dialect, profile, problem).steps
    return b"".join(step for step in steps if isinstance(step, bytes))


def build_json_reply(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, {"Content-Type": "application/json", **(headers or {})}, (serialize_json(body),))


def build_text_reply(status: int, text: str, kind: str = "text/plain; charset=utf-8") -> Reply:
    return Reply(status, {"Content-Type": kind}, (text.encode(),))


def reason_phrase(status: int) -> str:
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


def write_openai_error(problem: Problem, _profile: str) -> Reply:
    usual = "server_error" if problem.status >= 500 else "invalid_request_error"
    error = {
        "message": f"Invalid '{problem.param}': {problem.message}" if problem.path else problem.message,
        "type": _OPENAI_TYPES.get(problem.status, usual),
        "param": problem.param or None,
        "code": problem.code or _OPENAI_CODES.get(problem.status),
    }
    return build_json_reply(problem.status, {"error": error})


def write_databricks_error(problem: Problem, _profile: str) -> Reply:
    unavailable = "TEMPORARILY_UNAVAILABLE" if problem.status >= 500 else "BAD_REQUEST"
    code = problem.code or _DATABRICKS_CODES.get(problem.status, unavailable)
    message = f"{problem.param}: {problem.message}" if problem.path else problem.message
    return build_json_reply(problem.status, {"error_code": code, "message": message})


def write_azure_error(problem: Problem, profile: str) -> Reply:
    code = problem.code or reason_phrase(problem.status).lower().replace(" ", "_")
    body: JsonObject = {"error": reason_phrase(problem.status), "message": problem.message, "status": problem.status}
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
    return build_json_reply(problem.status, body, {"x-ms-error-code": code})


def write_mindie_error(problem: Problem, _profile: str) -> Reply:
    if problem.status == 413:
        return build_json_reply(413, {"message": problem.message})
    message = f"{problem.param}: {problem.message}" if problem.path else problem.message
    label = problem.code or _MINDIE_LABELS.get(problem.status, reason_phrase(problem.status))
    return build_json_reply(problem.status, {"error": message, "error_type": label})


_WRITERS: dict[str, Callable[[Problem, str], Reply]] = {
    "openai": write_openai_error,
    "databricks": write_databricks_error,
    "azure": write_azure_error,
    "mindie": write_mindie_error,
}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
