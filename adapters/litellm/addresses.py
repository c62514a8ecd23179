"""Refuse URLs in messages: for some vendors litellm fetches their contents itself, inside the proxy's network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

__all__ = ["refuse_addresses"]

_ADDRESS = re.compile(r"\s*(?!data:)[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
_REASON = "with litellm, images and files must be data: URLs, because litellm might fetch other URLs itself"


def refuse_addresses(body: JsonObject) -> None:
    """Refuse parts of messages that hold a URL instead of data; texts may contain anything.

    Raises Fault `unsupported_parameter` with the path of the URL.
    """
    for i, message in enumerate(body["messages"]):
        content = message.get("content")
        for j, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and part.get("type") not in ("text", "refusal"):
                for path, text in _find_texts(part, ("messages", i, "content", j)):
                    if _ADDRESS.match(text):
                        raise Fault("unsupported_parameter", _REASON, path, text, code="unsupported_value")


def _find_texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _find_texts(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _find_texts(inner, (*path, index))
