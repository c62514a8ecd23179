"""The target of a run, and the request that a step sends to it."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from dragoman.schemas import merge_patch

from .dialects import build_path, load_dialect
from .exchange import Request
from .json_types import JsonObject, JsonValue
from .model import Case, Step
from .placeholders import fill_placeholders

__all__ = ["IMAGE", "Target", "build_request"]

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
IMAGE = f"data:image/png;base64,{_PIXEL}"
"""The value of ${image}: one red pixel."""


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint of one dialect. `base_url` is the base URL that the dialect's own clients take. `without` lists the
    capabilities that it lacks; without `max_tokens`, requests send `max_completion_tokens` instead. `upstream` is the
    dialect of the fake provider behind it, if it is a proxy that the suite drives."""

    base_url: str
    dialect: str
    model: str
    key: str | None = None
    profile: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    protocols: frozenset[str] = frozenset()
    upstream: str | None = None

    @property
    def schema_profile(self) -> str:
        """The profile of the schemas that replies are validated against."""
        return self.profile or load_dialect(self.dialect).schema_profile


def build_request(step: Step, case: Case, target: Target, saved: Mapping[str, JsonValue]) -> tuple[Request, JsonObject]:
    """Build the request of a step. The second value is its body as a JSON object, empty if the body is none. Raises
    MissingValueError."""
    text = step.request
    dialect = load_dialect(case.dialect)
    text = merge_patch(text, dialect.select(text.get("for", {})) or {})
    values = {"model": target.model, "saved": saved, "image": IMAGE, "key": target.key or ""}
    text = fill_placeholders({k: v for k, v in text.items() if k != "for"}, values)
    path = text.get("path") or build_path(case.dialect, text.get("protocol", case.protocol), target.model)
    raw, body = _build_body(text, path, target)
    method = text.get("method") or ("POST" if raw else "GET")
    query = _drop_nulls({**dialect.query, **text.get("query", {})})
    whole = f"{path}?{urlencode(query)}" if query else path
    headers = _build_headers(text, target, with_body=bool(raw))
    return Request(method, target.base_url.rstrip("/") + whole, whole, headers, raw, text.get("leave", "")), body


def _build_body(text: JsonObject, path: str, target: Target) -> tuple[bytes, JsonObject]:
    if "raw" in text:
        raw = text["raw"]
        return b64decode(raw["$base64"]) if isinstance(raw, dict) else str(raw).encode(), {}
    body = text.get("body")
    if body is None:
        return b"", {}
    if isinstance(body, dict) and "model" not in body and text.get("model", True) and path not in _model_paths(target):
        body = {"model": target.model, **body}
    if isinstance(body, dict) and "max_tokens" in body and "max_tokens" in target.without:
        body = {**body, "max_completion_tokens": body["max_tokens"]}
        del body["max_tokens"]
    return json.dumps(body, ensure_ascii=False).encode(), body if isinstance(body, dict) else {}


def _model_paths(target: Target) -> list[str]:
    """The paths that name the target's model; a request to one of them needs no model in its body."""
    patterns = (path for paths in load_dialect(target.dialect).paths.values() for path in paths if "{model}" in path)
    return [pattern.replace("{model}", quote(target.model, safe="")) for pattern in patterns]


def _build_headers(text: JsonObject, target: Target, *, with_body: bool) -> dict[str, str]:
    given: dict[str, str | None] = {"Content-Type": "application/json"} if with_body else {}
    if target.key:
        forms = load_dialect(target.dialect).key
        given |= {name: form.format(key=target.key) for name, form in forms.items()}
    own = load_dialect(target.dialect).headers
    return _drop_nulls({**given, **own, **target.headers, **text.get("headers", {})})


def _drop_nulls(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
