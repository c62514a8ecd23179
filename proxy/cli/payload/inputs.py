"""What the options and the file print_lines, as values. Everything that is wrong with them is a UsageError."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dragoman.proxy.config.choices import PolicyChoice, list_policies

from .usage_error import UsageError, unknown_name_error

__all__ = ["parse_headers", "parse_policy", "parse_query", "read_payload"]

_STDIN = Path("-")


def read_payload(file: Path | None) -> bytes:
    """Read the file, or standard input if `file` is None or `-`."""
    if file is not None and file != _STDIN:
        try:
            return file.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {file}: {error.strerror}") from None
    if file is None and sys.stdin.isatty():
        raise UsageError("no FILE is given, and standard input is a terminal: name a file, or pipe the payload in")
    return sys.stdin.buffer.read()


def parse_headers(given: Sequence[str] | None) -> dict[str, str]:
    """Parse headers of the form `name: value`. Names become lower case."""
    found = {}
    for text in given or ():
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or not all(" " <= char <= "~" for char in text):
            raise UsageError(f'--header: "{text[:100]}" is not a header; write "name: value" in visible ASCII')
        found[name.strip().lower()] = value.strip()
    return found


def parse_query(given: Sequence[str] | None) -> dict[str, str]:
    """Parse query parameters of the form `name=value`."""
    return dict(_parse_pair("--query", text) for text in given or ())


def parse_policy(given: Sequence[str] | None) -> PolicyChoice:
    """Parse policies of the form `name=value`, as in `policy:` of a configuration file."""
    policies, chosen = list_policies(), {}
    for text in given or ():
        name, value = _parse_pair("--policy", text)
        name = name.replace("-", "_")
        if name not in policies:
            raise unknown_name_error("--policy", "policy", name, policies)
        if value not in policies[name]:
            raise UsageError(f'--policy: {name} cannot be "{value[:100]}"; it is one of: {", ".join(policies[name])}')
        chosen[name] = policies[name][value]
    return PolicyChoice(**chosen)


def _parse_pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f'{option}: "{text[:100]}" is not a pair; write name=value')
    return name.strip(), value.strip()
