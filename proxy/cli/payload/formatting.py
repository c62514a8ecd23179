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

from .output import format_json
from .validate import Finding

__all__ = [
    "Line",
    "fault_to_json",
    "format_call_count",
    "format_changes",
    "format_fault",
    "format_findings",
    "format_request_head",
    "format_response_head",
    "format_upstream_fault",
]

Line: TypeAlias = tuple[str, str]

_MAX_VALUE = 80  # characters of a value


def format_changes(changes: Sequence[Change]) -> Iterator[Line]:
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


def format_fault(fault: Fault, answer: Reply | None = None) -> Iterator[Line]:
    """The message, kind, owner and path of each reason, and the error reply that the client gets."""
    for reason in fault.reasons:
        yield "bold red", f"error: {reason.message}"
        yield "", f"  kind: {_describe_kind(reason)}"
        if reason.param:
            yield "", f"  path: {reason.param}"
    if answer is not None:
        yield "", f"  the client gets: status {answer.status}"
        yield from (("", f"  {line}") for line in format_json(answer.body).splitlines())


def format_upstream_fault(fault: Fault) -> Iterator[Line]:
    """The fault that dragoman reads from a provider's error."""
    yield "", f"understood as: {_describe_kind(fault)}" + (f", path {fault.param}" if fault.param else "")


def fault_to_json(fault: Fault) -> JsonObject:
    """The fault with the further reasons as `others`, if there are any."""
    others = {"others": [*map(fault_to_json, fault.others)]} if fault.others else {}
    return {
        "kind": fault.kind,
        "owner": fault.owner,
        "status": fault.status,
        "code": fault.code,
        "path": fault.param,
        "message": fault.message,
        **others,
    }


def format_findings(findings: Sequence[Finding]) -> Iterator[Line]:
    """For each finding: the place, the message, the value (cut if it is long), and the source of the rule."""
    for finding in findings:
        event = f"event {finding.event}: " if finding.event is not None else ""
        place = "" if finding.message.startswith(finding.path) else f"{finding.path}: "
        yield "bold red", f"{event}{place}{finding.message}"
        if finding.value is not None:
            yield "", f"  value: {_format_value(finding.value)}"
        if finding.source:
            yield "", f"  source: {'; '.join(finding.source)}"


def format_response_head(status: int, headers: Mapping[str, str]) -> Iterator[Line]:
    yield "bold", f"status {status}"
    yield from _format_headers(headers)


def format_request_head(method: str, target: str, headers: Mapping[str, str]) -> Iterator[Line]:
    yield "bold", f"{method} {target}"
    yield from _format_headers(headers)


def format_call_count(calls: int) -> str:
    """The line before the first of several calls."""
    return f"the first of {calls} calls:"


def _format_headers(headers: Mapping[str, str]) -> Iterator[Line]:
    yield from (("", f"{name}: {value}") for name, value in headers.items())


def _describe_kind(fault: Fault) -> str:
    return f"{fault.kind}, the {fault.owner}'s fault" + (f", code {fault.code}" if fault.code else "")


def _format_value(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."
