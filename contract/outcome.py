"""What the checks look at: one exchange, taken apart once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dragoman.adapters.sse import Event, Framer, Stray, TooLong

from .model import Json
from .paths import ABSENT
from .said import Said, said_by
from .wire import Answer

__all__ = ["Outcome", "Received", "StreamEvent"]


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One server-sent event. `body` is its data as JSON, ABSENT where it is none."""

    name: str
    data: str
    body: Any


@dataclass(frozen=True, slots=True)
class Received:
    """A request as the fake behind the proxy got it. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Outcome:
    """`request` is the body that was sent, `sent` what reached the fake provider, `saved` what earlier steps kept;
    `let_go` says that the provider's connection was closed early, where the client left."""

    dialect: str
    profile: str
    protocol: str
    model: str
    request: Json
    answer: Answer
    key: str = ""
    saved: Mapping[str, Any] = field(default_factory=dict)
    sent: Sequence[Received] = ()
    upstream: str | None = None
    upstream_profile: str = "actual"
    let_go: bool = False

    @property
    def stream(self) -> bool:
        return self.request.get("stream") is True

    @property
    def is_sse(self) -> bool:
        return (self.answer.header("content-type") or "").split(";")[0].strip().lower() == "text/event-stream"

    @cached_property
    def text(self) -> str:
        return self.answer.body.decode("utf-8", "replace")

    @cached_property
    def body(self) -> Any:
        return _json(self.text)

    @cached_property
    def items(self) -> list[Event | Stray]:
        """The stream's events and stray lines, in order."""
        framer = Framer(64 * 1024 * 1024)
        try:
            return [*framer.feed(self.answer.body), *framer.close()]
        except TooLong as error:
            return [Stray(str(error).encode())]

    @cached_property
    def events(self) -> list[StreamEvent]:
        return [_event(item) for item in self.items if isinstance(item, Event)]

    @cached_property
    def strays(self) -> list[str]:
        return [item.text.decode("utf-8", "replace") for item in self.items if isinstance(item, Stray)]

    @cached_property
    def objects(self) -> list[Json]:
        """The JSON objects of the stream, `[DONE]` and all else left out; for a whole reply, that reply."""
        bodies = [event.body for event in self.events] if self.is_sse else [self.body]
        return [body for body in bodies if isinstance(body, dict)]

    @cached_property
    def said(self) -> Said:
        """What the model said, whichever way it came."""
        return said_by(self.protocol, self.objects, stream=self.is_sse)


def _event(item: Event) -> StreamEvent:
    data = item.data.decode("utf-8", "replace")
    return StreamEvent(item.event.decode("utf-8", "replace"), data, _json(data))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return ABSENT
