"""The paths of a provider in its dialect, and the protocol that a request asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = ["MODEL", "match_path", "read_protocol", "select_protocol"]

MODEL = "fake-model"
_PROTOCOL_BY_KEY = {"prompt": "completions", "input": "embeddings"}


def match_path(dialect: str, path: str) -> tuple[str, re.Match[str]] | None:
    """Find the protocol that the dialect serves at a path. The match has the group `model` if the path names one."""
    found = ((protocol, pattern.fullmatch(path)) for protocol, some in _patterns(dialect).items() for pattern in some)
    return next(((protocol, match) for protocol, match in found if match), None)


def read_protocol(dialect: str, path: str, body: JsonValue) -> str:
    """Read which protocol a request asks for, empty if the dialect serves none there."""
    route = match_path(dialect, path)
    return select_protocol(*route, body if isinstance(body, dict) else {}) if route else ""


def select_protocol(protocol: str, path: re.Match[str], body: JsonObject) -> str:
    """Select the protocol of the body if the path serves several protocols."""
    if "model" not in path.re.groupindex or "messages" in body:
        return protocol
    return next((other for key, other in _PROTOCOL_BY_KEY.items() if key in body), protocol)


@cache
def _patterns(name: str) -> Mapping[str, list[re.Pattern[str]]]:
    dialect = load_dialect(name)
    return {
        protocol: [_compile_pattern(dialect.root + path) for path in paths]
        for protocol, paths in dialect.paths.items()
        if protocol != "models"
    }


def _compile_pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace(r"\{model\}", r"(?P<model>[^/]+)"))
