"""Which protocol of its dialect a fake is asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from dragoman.contract.dialects import Dialect, dialect

from .answers import Json

__all__ = ["MODEL", "match_path", "protocol_of"]

MODEL = "fake-model"
_PROTOCOL_OF_KEY = {"prompt": "completions", "input": "embeddings"}


def match_path(row: Dialect, path: str) -> tuple[str, re.Match[str]] | None:
    """The protocol that is served at a path, as it is sent, and the match, which has the model if the path does."""
    found = ((protocol, pattern.fullmatch(path)) for protocol, some in _patterns(row.name).items() for pattern in some)
    return next(((protocol, match) for protocol, match in found if match), None)


def protocol_of(protocol: str, path: re.Match[str], body: Json) -> str:
    """The protocol that the body asks for, if the path serves several."""
    if "model" not in path.re.groupindex or "messages" in body:
        return protocol
    return next((asked for key, asked in _PROTOCOL_OF_KEY.items() if key in body), protocol)


@cache
def _patterns(name: str) -> Mapping[str, list[re.Pattern[str]]]:
    row = dialect(name)
    return {
        protocol: [_pattern(row.root + path) for path in paths]
        for protocol, paths in row.paths.items()
        if protocol != "models"
    }


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace(r"\{model\}", r"(?P<model>[^/]+)"))
