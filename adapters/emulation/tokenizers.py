"""The tables of OpenAI's tokens, from the package `bpe-openai` of the extra `tokens`; nothing is downloaded."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.model_facts import find_facts

__all__ = ["INSTALL", "find_encoding", "find_table", "has_tables", "load_encoding"]

INSTALL = "uv pip install '.[tokens]'"

_PACKAGE = "bpe_openai"
_TABLES: Mapping[str, str] = {"o200k_harmony": "o200k_base"}
"""Encodings whose tokens of text are those of another one."""


def find_encoding(request: JsonObject) -> str | None:
    """The encoding of the tokens of the model that the client asks for; None if it is not documented."""
    return find_table(find_facts(str(request.get("model") or "")).tokenizer)


def find_table(tokenizer: str | None) -> str | None:
    """The encoding whose table has the tokens of a tokenizer."""
    return None if tokenizer is None else _TABLES.get(tokenizer, tokenizer)


def has_tables() -> bool:
    """Whether the package is installed."""
    return find_spec(_PACKAGE) is not None


@cache
def load_encoding(name: str) -> Any:
    """Load the table of an encoding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the package's own, while it is imported
        return import_module(_PACKAGE).get_encoding(name)
