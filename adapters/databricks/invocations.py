"""What a Databricks serving endpoint is asked for: one address serves every protocol, and the body tells which."""

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
_OF_EMBEDDINGS_TOO = {"model", "input", "user"}


def parse_endpoint_name(path: str) -> str | None:
    """The endpoint that an address names, which is the model; None where the body has to name it."""
    named = _INVOCATIONS.fullmatch(path)
    return None if named is None else unquote(named[1])


def choose_protocol(call: Call, task: Callable[[str], str | None]) -> str:
    """`messages` asks for chat, `prompt` for completions. `input` asks for what `task` tells of the endpoint; where
    it tells nothing, for responses if anything in the body is theirs alone, else for embeddings."""
    body = call.body
    if "messages" in body or not body.keys() & {"prompt", "input"}:
        return "chat"
    if "input" not in body:
        return "completions"
    endpoint = parse_endpoint_name(call.path)
    configured = None if endpoint is None else task(endpoint)
    if configured is not None:
        return configured
    responses = not _of_responses_only().isdisjoint(body) or _has_objects(body["input"])
    return "responses" if responses else "embeddings"


@cache
def _of_responses_only() -> frozenset[str]:
    known = load("databricks/responses.request")["properties"].keys()
    return frozenset(known - _OF_EMBEDDINGS_TOO | {"previous_response_id"})


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)
