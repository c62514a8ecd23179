"""The command `validate`: a payload against the schema of its dialect, protocol and side."""

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
from dragoman.adapters.messages.requests import check_request as check_messages
from dragoman.adapters.paths import format_path, lookup
from dragoman.adapters.responses.requests import check_request as check_responses
from dragoman.adapters.sse import Event, Framer, Stray, TooLong
from dragoman.adapters.validation import Validator, Violation, load_validator
from dragoman.proxy.config.choices import PolicyChoice
from dragoman.schemas import names

from .rule_sources import find_source
from .translate import TranslationTask, translate
from .usage_error import UsageError, unknown_name_error
from .wire_format import WireFormat

__all__ = ["Finding", "PayloadType", "validate"]

_STREAM = "stream"
_DONE = b"[DONE]"
_FURTHER_CHECKS: Mapping[str, Callable[[JsonObject, Validator], object]] = {
    "chat.request": check_chat,
    "responses.request": check_responses,
    "embeddings.request": check_embeddings,
    "completions.request": check_completions,
    "messages.request": check_messages,
    "count_tokens.request": check_messages,
}
"""The proxy's checks of requests that a schema cannot express. Each raises Fault."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation. `event` counts the events of a stream from 1; `source` names the documents that the rule is
    from."""

    path: str
    message: str
    value: Any = None
    source: tuple[str, ...] = ()
    event: int | None = None

    def to_json(self) -> JsonObject:
        fields: JsonObject = {"path": self.path, "message": self.message, "value": self.value, "source": self.source}
        return fields if self.event is None else {"event": self.event, **fields}


@dataclass(frozen=True, slots=True)
class PayloadType:
    """The kind of a payload. `schema` is the name of the schema for it, or for each event of a stream."""

    dialect: str
    protocol: str
    side: str
    profile: str

    @classmethod
    def parse(cls, text: str, profile: str) -> PayloadType:
        """Parse `DIALECT/PROTOCOL/SIDE`. Raises UsageError."""
        dialect, _, rest = text.partition("/")
        protocol, _, side = rest.replace(".", "/").partition("/")
        payload_type = cls(dialect, protocol, side, profile)
        known = [name.replace(".", "/") for name in names()]
        known += [name.replace(".event", f"/{_STREAM}") for name in names() if _has_events(name)]
        if f"{dialect}/{protocol}/{side}" not in known:
            raise unknown_name_error("DIALECT/PROTOCOL/SIDE", "payload", text, sorted(known))
        found = dialects.get(dialect)
        profiles = found.profiles if found else ("documented",)
        if profile not in profiles:
            raise UsageError(f'--profile: {dialect} has no profile "{profile}"; it has: {", ".join(profiles)}')
        return payload_type

    @property
    def schema(self) -> str:
        return f"{self.dialect}/{self.protocol}.{'event' if self.side == _STREAM else self.side}"


def validate(data: bytes, payload_type: PayloadType) -> list[Finding]:
    """All violations of the payload."""
    rules = load_validator(payload_type.schema, payload_type.profile)
    if payload_type.side == _STREAM:
        return [*_validate_events(data, rules), *_check_completeness(data, payload_type)]
    try:
        body = read_object(data) if payload_type.side == "request" else read_any(data)
    except Fault as fault:
        return [Finding(format_path(fault.path), fault.message)]
    except ValueError as error:
        return [Finding("", f"The payload is not valid JSON: {error}")]
    found = [_create_finding(violation, rules) for violation in rules.violations(body)]
    return found or _check_further(body, payload_type, rules)


def _has_events(name: str) -> bool:
    dialect, _, side = name.partition("/")
    return dialect in dialects and side.endswith(".event")


def _check_further(body: JsonObject, payload_type: PayloadType, rules: Validator) -> list[Finding]:
    check = _FURTHER_CHECKS.get(f"{payload_type.protocol}.{payload_type.side}")
    try:
        if check is not None:
            check(body, rules)
    except Fault as fault:
        return [Finding(format_path(one.path), one.message, lookup(body, one.path)) for one in fault.reasons]
    return []


def _validate_events(data: bytes, rules: Validator) -> Iterator[Finding]:
    framer = Framer()
    try:
        items = [*framer.feed(data), *framer.close()]
    except TooLong as error:
        yield Finding("", str(error))
        return
    for number, item in enumerate(items, 1):
        if isinstance(item, Stray):
            text = item.text.decode("utf-8", "replace")
            yield Finding("", "The line does not belong to an event", text, event=number)
        elif item.data.strip() != _DONE:
            yield from _validate_event(item, number, rules)


def _validate_event(item: Event, number: int, rules: Validator) -> Iterator[Finding]:
    try:
        body = read_any(item.data)
    except ValueError:
        text = item.data.decode("utf-8", "replace")
        yield Finding("", "The data of the event is not valid JSON", text, event=number)
        return
    for violation in rules.violations(body):
        yield _create_finding(violation, rules, number)


def _check_completeness(data: bytes, payload_type: PayloadType) -> list[Finding]:
    """Check with the proxy's stream reader that the stream is complete. Nothing is repaired."""
    wire_format = WireFormat.parse(
        "DIALECT/PROTOCOL/SIDE", f"{payload_type.dialect}/{payload_type.protocol}", payload_type.profile
    )
    task = TranslationTask(wire_format, wire_format, policy=PolicyChoice(replies="off"))
    fault = translate("stream", data, task).fault
    return [] if fault is None else [Finding("", fault.message)]


def _create_finding(violation: Violation, rules: Validator, event: int | None = None) -> Finding:
    source = find_source(violation, rules.schema)
    return Finding(format_path(violation.path), violation.message, violation.value, source, event)
