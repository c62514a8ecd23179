"""Judging a payload by the schema of its dialect, protocol and side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.adapters import dialects
from dragoman.adapters.call import JsonObject
from dragoman.adapters.chat.requests import check_request as check_chat
from dragoman.adapters.completions.requests import check_request as check_completions
from dragoman.adapters.embeddings.requests import check_request as check_embeddings
from dragoman.adapters.faults import Fault
from dragoman.adapters.jsontext import read_any, read_object
from dragoman.adapters.paths import format_path, lookup
from dragoman.adapters.responses.requests import check_request as check_responses
from dragoman.adapters.sse import Event, Framer, Stray, TooLong
from dragoman.adapters.validation import Validator, Violation, load_validator
from dragoman.proxy.config.models import PolicyChoice
from dragoman.schemas import names

from .misuse import Misuse, unknown
from .sources import source_of
from .speech import Speech
from .translate import Task, translate

__all__ = ["Finding", "Subject", "validate"]

_STREAM = "stream"
_DONE = b"[DONE]"
_BEYOND_SCHEMAS: Mapping[str, Callable[[JsonObject, Validator], None]] = {
    "chat.request": check_chat,
    "responses.request": check_responses,
    "embeddings.request": check_embeddings,
    "completions.request": check_completions,
}
"""What the proxy asks of a payload beside its schema. Each raises Fault."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong. `event` counts the events of a stream from 1; `source` tells where the rule comes from."""

    path: str
    message: str
    value: Any = None
    source: tuple[str, ...] = ()
    event: int | None = None

    def public(self) -> JsonObject:
        shown: JsonObject = {"path": self.path, "message": self.message, "value": self.value, "source": self.source}
        return shown if self.event is None else {"event": self.event, **shown}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a payload is said to be. `schema` is the name of the one that judges it, or each event of a stream."""

    dialect: str
    protocol: str
    side: str
    profile: str

    @classmethod
    def parse(cls, text: str, profile: str) -> Subject:
        """From `DIALECT/PROTOCOL/SIDE`. Raises Misuse."""
        dialect, _, rest = text.partition("/")
        protocol, _, side = rest.replace(".", "/").partition("/")
        subject = cls(dialect, protocol, side, profile)
        known = [name.replace(".", "/") for name in names()]
        known += [name.replace(".event", f"/{_STREAM}") for name in names() if _is_of_stream(name)]
        if f"{dialect}/{protocol}/{side}" not in known:
            raise unknown("DIALECT/PROTOCOL/SIDE", "payload", text, sorted(known))
        spoken = dialects.get(dialect)
        profiles = spoken.profiles if spoken else ("documented",)
        if profile not in profiles:
            raise Misuse(f'--profile: {dialect} has no profile "{profile}"; it has: {", ".join(profiles)}')
        return subject

    @property
    def schema(self) -> str:
        return f"{self.dialect}/{self.protocol}.{'event' if self.side == _STREAM else self.side}"


def validate(data: bytes, subject: Subject) -> list[Finding]:
    """Everything that is wrong with the payload."""
    rules = load_validator(subject.schema, subject.profile)
    if subject.side == _STREAM:
        return [*_events(data, rules), *_completeness(data, subject)]
    try:
        body = read_object(data) if subject.side == "request" else read_any(data)
    except Fault as fault:
        return [Finding(format_path(fault.path), fault.message)]
    except ValueError as error:
        return [Finding("", f"The payload is not valid JSON: {error}")]
    found = [_finding(violation, rules) for violation in rules.violations(body)]
    return found or _beyond(body, subject, rules)


def _is_of_stream(name: str) -> bool:
    dialect, _, side = name.partition("/")
    return dialect in dialects and side.endswith(".event")


def _beyond(body: JsonObject, subject: Subject, rules: Validator) -> list[Finding]:
    check = _BEYOND_SCHEMAS.get(f"{subject.protocol}.{subject.side}")
    try:
        if check is not None:
            check(body, rules)
    except Fault as fault:
        return [Finding(format_path(fault.path), fault.message, lookup(body, fault.path))]
    return []


def _events(data: bytes, rules: Validator) -> Iterator[Finding]:
    framer = Framer()
    try:
        items = [*framer.feed(data), *framer.close()]
    except TooLong as error:
        yield Finding("", str(error))
        return
    for number, item in enumerate(items, 1):
        if isinstance(item, Stray):
            text = item.text.decode("utf-8", "replace")
            yield Finding("", "The line belongs to no event", text, event=number)
        elif item.data.strip() != _DONE:
            yield from _event(item, number, rules)


def _event(item: Event, number: int, rules: Validator) -> Iterator[Finding]:
    try:
        body = read_any(item.data)
    except ValueError:
        text = item.data.decode("utf-8", "replace")
        yield Finding("", "The data of the event is not valid JSON", text, event=number)
        return
    for violation in rules.violations(body):
        yield _finding(violation, rules, number)


def _completeness(data: bytes, subject: Subject) -> list[Finding]:
    """What the stream reader of the proxy says of the stream as a whole, without mending anything."""
    spoken = Speech.parse("DIALECT/PROTOCOL/SIDE", f"{subject.dialect}/{subject.protocol}", subject.profile)
    task = Task(spoken, spoken, policy=PolicyChoice(replies="off"))
    fault = translate("stream", data, task).fault
    return [] if fault is None else [Finding("", fault.message)]


def _finding(violation: Violation, rules: Validator, event: int | None = None) -> Finding:
    source = source_of(violation, rules.schema)
    return Finding(format_path(violation.path), violation.message, violation.value, source, event)
