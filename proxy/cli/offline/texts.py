"""Receipts, faults and calls as lines for people, and as JSON for programs.

A line is a pair of a style, empty for none, and a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from dragoman.adapters.call import JsonObject, Reply
from dragoman.adapters.changes import Change
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import format_path

from .screen import pretty
from .validate import Finding

__all__ = [
    "Line",
    "call_lines",
    "change_lines",
    "fault_json",
    "fault_lines",
    "finding_lines",
    "head_lines",
    "several",
    "told_lines",
]

Line: TypeAlias = tuple[str, str]

_SHOWN = 80


def change_lines(changes: Sequence[Change]) -> Iterator[Line]:
    """One line for each change: weight, action, before -> after, reason."""
    if not changes:
        yield "dim", "nothing changed"
    for change in changes:
        place = " -> ".join(dict.fromkeys(format_path(path) for path in (change.before, change.after) if path))
        arrow = "-> " if not change.before else ""
        yield (
            "yellow" if change.weight == "loss" else "",
            f"{change.weight:<5} {change.action:<10} {arrow}{place}: {change.reason}",
        )


def fault_lines(fault: Fault, answer: Reply | None = None) -> Iterator[Line]:
    """What went wrong, whose fault it is, where; and what the client gets for it."""
    yield "bold red", f"error: {fault.message}"
    yield "", f"  kind: {_kind(fault)}"
    if fault.param:
        yield "", f"  path: {fault.param}"
    if answer is not None:
        yield "", f"  the client gets: status {answer.status}"
        yield from (("", f"  {line}") for line in pretty(answer.body).splitlines())


def told_lines(fault: Fault) -> Iterator[Line]:
    """What a provider's error was understood as."""
    yield "", f"understood as: {_kind(fault)}" + (f", path {fault.param}" if fault.param else "")


def fault_json(fault: Fault) -> JsonObject:
    return {
        "kind": fault.kind,
        "owner": fault.owner,
        "status": fault.status,
        "code": fault.code,
        "path": fault.param,
        "message": fault.message,
    }


def finding_lines(findings: Sequence[Finding]) -> Iterator[Line]:
    """What breaks a schema: the place, the sentence, the value in short, where the rule comes from."""
    for finding in findings:
        event = f"event {finding.event}: " if finding.event is not None else ""
        place = "" if finding.message.startswith(finding.path) else f"{finding.path}: "
        yield "bold red", f"{event}{place}{finding.message}"
        if finding.value is not None:
            yield "", f"  value: {_short(finding.value)}"
        if finding.source:
            yield "", f"  source: {'; '.join(finding.source)}"


def head_lines(status: int, headers: Mapping[str, str]) -> Iterator[Line]:
    """The head of an answer."""
    yield "bold", f"status {status}"
    yield from _header_lines(headers)


def call_lines(method: str, address: str, headers: Mapping[str, str]) -> Iterator[Line]:
    """The head of a call."""
    yield "bold", f"{method} {address}"
    yield from _header_lines(headers)


def several(calls: int) -> str:
    """What stands above the first of several calls."""
    return f"the first of {calls} calls, each with a part of the inputs:"


def _header_lines(headers: Mapping[str, str]) -> Iterator[Line]:
    yield from (("", f"{name}: {value}") for name, value in headers.items())


def _kind(fault: Fault) -> str:
    return f"{fault.kind}, the {fault.owner}'s fault" + (f", code {fault.code}" if fault.code else "")


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
