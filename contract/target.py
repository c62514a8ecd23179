"""What is under test, and how a case's request is written for it."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from dragoman.schemas import merge_patch

from .addresses import ADDRESSES, path_of
from .model import Case, Json, Step
from .values import filled
from .wire import Asked

__all__ = ["IMAGE", "Target", "written"]

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
        return self.profile or ADDRESSES[self.dialect].profile


def written(step: Step, case: Case, target: Target, saved: Mapping[str, Any]) -> tuple[Asked, Json]:
    """The request as bytes, and its body as JSON, empty where it has none. Raises Missing."""
    text = step.request
    text = merge_patch(text, text.get("for", {}).get(case.dialect, {}))
    values = {"model": target.model, "saved": saved, "image": IMAGE, "key": target.key or ""}
    text = filled({k: v for k, v in text.items() if k != "for"}, values)
    protocol = text.get("protocol", case.protocol)
    path = text.get("path") or path_of(case.dialect, protocol, target.model)
    raw, body = _body(text, path, target)
    method = text.get("method") or ("POST" if raw else "GET")
    query = _kept({**ADDRESSES[case.dialect].query, **text.get("query", {})})
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
    named = target.dialect == "databricks" and path == path_of("databricks", "chat", target.model)
    if isinstance(body, dict) and "model" not in body and text.get("model", True) and not named:
        body = {"model": target.model, **body}
    if isinstance(body, dict) and "max_tokens" in body and "max_tokens" in target.without:
        body = {**body, "max_completion_tokens": body["max_tokens"]}
        del body["max_tokens"]
    return json.dumps(body, ensure_ascii=False).encode(), body if isinstance(body, dict) else {}


def _headers(text: Json, target: Target, *, with_body: bool) -> dict[str, str]:
    given: dict[str, str | None] = {"Content-Type": "application/json"} if with_body else {}
    if target.key:
        given |= {name: form.format(key=target.key) for name, form in ADDRESSES[target.dialect].key.items()}
    return _kept({**given, **target.headers, **text.get("headers", {})})


def _kept(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
