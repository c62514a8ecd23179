"""Calls of a Databricks serving endpoint: one address serves every protocol, and the body shows which."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import unquote

from dragoman.adapters.call import Call
from dragoman.schemas import load

__all__ = ["choose_protocol", "parse_endpoint_name"]

_INVOCATIONS = re.compile(r"/serving-endpoints/([^/]+)/invocations")
_SHARED_WITH_EMBEDDINGS = {"model", "input", "user"}


def parse_endpoint_name(path: str) -> str | None:
    """Return the endpoint that a path names, which is the model; None if the path names none."""
    named = _INVOCATIONS.fullmatch(path)
    return None if named is None else unquote(named[1])


def choose_protocol(call: Call, task: Callable[[str], str | None]) -> str:
    """Return the protocol that a call of an endpoint asks for.

    A body with `messages` asks for chat, one with `prompt` for completions. One with `input` asks for the task that is
    configured for the endpoint, which `task` returns. If none is configured, it asks for responses if it has anything
    that only responses have, else for embeddings.
    """
    body = call.body
    if "messages" in body or not body.keys() & {"prompt", "input"}:
        return "chat"
    if "input" not in body:
        return "completions"
    endpoint = parse_endpoint_name(call.path)
    configured = None if endpoint is None else task(endpoint)
    if configured is not None:
        return configured
    responses = not _keys_of_responses_only().isdisjoint(body) or _has_objects(body["input"])
    return "responses" if responses else "embeddings"


@cache
def _keys_of_responses_only() -> frozenset[str]:
    known = load("databricks/responses.request", "actual")["properties"].keys()
    return frozenset(known - _SHARED_WITH_EMBEDDINGS | {"previous_response_id"})


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)
