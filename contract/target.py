"""What is under test, and how a case's request is written for it."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from dragoman.schemas import merge_patch

from .dialects import dialect, path_of
from .model import Case, Json, Step
from .values import filled
from .wire import Asked

__all__ = ["IMAGE", "Target", "for_dialect", "written"]

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
IMAGE = f"data:image/png;base64,{_PIXEL}"
"""One red pixel, as ${image}."""


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint of one dialect. `base_url` is what the dialect's own clients take; `without` are the capabilities
    that it has not (without `max_tokens`, that bound is called `max_completion_tokens`); `upstream` is the dialect of
    the fake behind it, where it is a proxy that the suite drives."""

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
    def judged_by(self) -> str:
        return self.profile or dialect(self.dialect).judged_in


def written(step: Step, case: Case, target: Target, saved: Mapping[str, Any]) -> tuple[Asked, Json]:
    """The request as bytes, and its body as JSON, empty where it has none. Raises Missing."""
    text = step.request
    text = merge_patch(text, for_dialect(text.get("for", {}), case.dialect) or {})
    values = {"model": target.model, "saved": saved, "image": IMAGE, "key": target.key or ""}
    text = filled({k: v for k, v in text.items() if k != "for"}, values)
    protocol = text.get("protocol", case.protocol)
    path = text.get("path") or path_of(case.dialect, protocol, target.model)
    raw, body = _body(text, path, target)
    method = text.get("method") or ("POST" if raw else "GET")
    query = _kept({**dialect(case.dialect).query, **text.get("query", {})})
    whole = f"{path}?{urlencode(query)}" if query else path
    headers = _headers(text, target, with_body=bool(raw))
    return Asked(method, target.base_url.rstrip("/") + whole, whole, headers, raw, text.get("leave", "")), body


def _body(text: Json, path: str, target: Target) -> tuple[bytes, Json]:
    if "raw" in text:
        raw = text["raw"]
        return b64decode(raw["$base64"]) if isinstance(raw, dict) else str(raw).encode(), {}
    body = text.get("body")
    if body is None:
        return b"", {}
    named = path in _paths_with_model(target)
    if isinstance(body, dict) and "model" not in body and text.get("model", True) and not named:
        body = {"model": target.model, **body}
    if isinstance(body, dict) and "max_tokens" in body and "max_tokens" in target.without:
        body = {**body, "max_completion_tokens": body["max_tokens"]}
        del body["max_tokens"]
    return json.dumps(body, ensure_ascii=False).encode(), body if isinstance(body, dict) else {}


def for_dialect(values: Mapping[str, Any], name: str) -> Any:
    """Of values by dialect, the one for a dialect or one of its tags; None if there is none."""
    return next((values[word] for word in dialect(name).names if word in values), None)


def _paths_with_model(target: Target) -> list[str]:
    """The paths that name the target's model, so that bodies need not."""
    patterns = (path for paths in dialect(target.dialect).paths.values() for path in paths if "{model}" in path)
    return [pattern.replace("{model}", quote(target.model, safe="")) for pattern in patterns]


def _headers(text: Json, target: Target, *, with_body: bool) -> dict[str, str]:
    given: dict[str, str | None] = {"Content-Type": "application/json"} if with_body else {}
    if target.key:
        given |= {name: form.format(key=target.key) for name, form in dialect(target.dialect).key.items()}
    return _kept({**given, **target.headers, **text.get("headers", {})})


def _kept(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
