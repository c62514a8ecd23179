"""The outcome of one step: the reply, parsed once, with all that the checks read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dragoman.adapters.sse import Event, Framer, Stray, TooLong

from .exchange import Response
from .json_path import ABSENT
from .json_types import JsonObject, JsonValue
from .reply_content import ReplyContent, read_reply_content

__all__ = ["DONE", "TERMINALS", "Outcome", "StreamEvent", "UpstreamRequest"]

_MOST_EVENT_BYTES = 64 * 1024 * 1024
DONE = "[DONE]"
TERMINALS: Mapping[str, tuple[str, ...]] = {
    "responses": ("response.completed", "response.incomplete", "response.failed"),
    "messages": ("message_stop", "error"),
}
"""The types of the last event, by protocol."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One server-sent event. `body` is its data as JSON, ABSENT if the data is not JSON."""

    name: str
    data: str
    body: JsonValue


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request that the proxy sent to the fake provider. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: JsonValue


@dataclass(frozen=True)
class Outcome:
    """`request` is the body that was sent, `sent` what the proxy sent upstream, `saved` the values of earlier steps.
    `upstream_released` is True if the proxy closed its requests upstream after its client had left."""

    dialect: str
    profile: str
    protocol: str
    model: str
    request: JsonObject
    response: Response
    key: str = ""
    saved: Mapping[str, JsonValue] = field(default_factory=dict)
    sent: Sequence[UpstreamRequest] = ()
    upstream: str | None = None
    upstream_profile: str = "actual"
    upstream_released: bool = False

    @property
    def is_sse(self) -> bool:
        return (self.response.header("content-type") or "").split(";")[0].strip().lower() == "text/event-stream"

    @cached_property
    def text(self) -> str:
        return self.response.body.decode("utf-8", "replace")

    @cached_property
    def body(self) -> JsonValue:
        return _parse_json(self.text)

    @cached_property
    def items(self) -> list[Event | Stray]:
        """The stream's events and stray lines, in order."""
        framer = Framer(_MOST_EVENT_BYTES)
        try:
            return [*framer.feed(self.response.body), *framer.close()]
        except TooLong as error:
            return [Stray(str(error).encode())]

    @cached_property
    def events(self) -> list[StreamEvent]:
        return [_parse_event(item) for item in self.items if isinstance(item, Event)]

    @cached_property
    def strays(self) -> list[str]:
        return [item.text.decode("utf-8", "replace") for item in self.items if isinstance(item, Stray)]

    @cached_property
    def objects(self) -> list[JsonObject]:
        """The JSON objects of the stream, without `[DONE]`; for a whole reply, that reply."""
        bodies = [event.body for event in self.events] if self.is_sse else [self.body]
        return [body for body in bodies if isinstance(body, dict)]

    @cached_property
    def last_object(self) -> JsonValue:
        """The body of a whole reply; the last JSON object of a stream, ABSENT if it has none."""
        if not self.is_sse:
            return self.body
        return self.objects[-1] if self.objects else ABSENT

    @cached_property
    def has_ended(self) -> bool:
        """Whether the end of a stream has arrived: `[DONE]`, or the last event of the protocol."""
        ends = TERMINALS.get(self.protocol, ())
        return any(event.data == DONE or _has_type(event.body, ends) for event in self.events) if self.is_sse else False

    @cached_property
    def content(self) -> ReplyContent:
        """What the model wrote, in the same shape for whole and streamed replies."""
        return read_reply_content(self.protocol, self.objects, stream=self.is_sse)


def _has_type(body: JsonValue, types: Sequence[str]) -> bool:
    return isinstance(body, dict) and body.get("type") in types


def _parse_event(item: Event) -> StreamEvent:
    data = item.data.decode("utf-8", "replace")
    return StreamEvent(item.event.decode("utf-8", "replace"), data, _parse_json(data))


def _parse_json(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return ABSENT
