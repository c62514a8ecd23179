"""What the options and the file say, as values. Everything that is wrong with them is a Misuse."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from dragoman.proxy.config.models import PolicyChoice

from .misuse import Misuse, unknown

__all__ = ["headers", "payload", "policy", "query"]

_STDIN = Path("-")


def payload(file: Path | None) -> bytes:
    """The bytes of the file, or of standard input where none is named or it is called `-`."""
    if file is not None and file != _STDIN:
        try:
            return file.read_bytes()
        except OSError as error:
            raise Misuse(f"cannot read {file}: {error.strerror}") from None
    if file is None and sys.stdin.isatty():
        raise Misuse("no FILE is named, and standard input is a terminal: name a file, or pipe the payload in")
    return sys.stdin.buffer.read()


def headers(given: Sequence[str] | None) -> dict[str, str]:
    """`name: value` each; names become lower case."""
    found = {}
    for text in given or ():
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or not all(" " <= char <= "~" for char in text):
            raise Misuse(f'--header: "{text[:100]}" is no header; write "name: value" in visible ASCII')
        found[name.strip().lower()] = value.strip()
    return found


def query(given: Sequence[str] | None) -> dict[str, str]:
    """`name=value` each."""
    return dict(_pair("--query", text) for text in given or ())


def policy(given: Sequence[str] | None) -> PolicyChoice:
    """`name=value` each, as `policy:` has them in a configuration file."""
    chosen = {}
    for text in given or ():
        name, value = _pair("--policy", text)
        name = name.replace("-", "_")
        if name not in _POLICIES:
            raise unknown("--policy", "policy", name, _POLICIES)
        if value not in _POLICIES[name]:
            raise Misuse(f'--policy: {name} cannot be "{value[:100]}"; it is one of: {", ".join(_POLICIES[name])}')
        chosen[name] = value
    return PolicyChoice.model_validate(chosen)


_POLICIES: dict[str, tuple[str, ...]] = {
    name: get_args(get_args(field.annotation)[0]) or ("true", "false")
    for name, field in PolicyChoice.model_fields.items()
}


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise Misuse(f'{option}: "{text[:100]}" is no pair; write name=value')
    return name.strip(), value.strip()
