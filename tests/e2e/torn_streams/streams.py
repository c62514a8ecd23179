"""Streams that providers really send, torn in every way: what a proxy gets if a provider, or the way to it, fails."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.pipeline import find_bridge
from dragoman.contract.json_types import JsonValue

__all__ = [
    "FRAMINGS",
    "PAIRS",
    "POLICIES",
    "Framing",
    "Pair",
    "Speaker",
    "TornStream",
    "recorded_streams",
    "torn_streams",
]

Framing = Literal["chunked", "length", "close"]
Draw = Callable[[st.SearchStrategy[Any]], Any]

FRAMINGS: tuple[Framing, ...] = ("chunked", "length", "close")
"""How a reply shows where its body ends: a last chunk, a Content-Length, or the end of the connection."""

POLICIES = ("repair", "off", "report", "strict")

_FIXTURES = Path(__file__).parents[2] / "adapters"
_PROTOCOLS = ("chat", "responses", "completions")  # embeddings have no streams


class Speaker(NamedTuple):
    dialect: str
    protocol: str

    def __str__(self) -> str:
        return f"{self.dialect}/{self.protocol}"


class Pair(NamedTuple):
    client: Speaker
    provider: Speaker


@dataclass(frozen=True)
class TornStream:
    """The bytes of one reply. `sizes` are those of its first writes, `is_cut` says that the connection broke before the
    body had ended."""

    pair: Pair
    policy: str
    data: bytes
    sizes: tuple[int, ...] = ()
    framing: Framing = "chunked"
    is_cut: bool = False

    @property
    def writes(self) -> list[bytes]:
        """The bytes in pieces, none of them empty."""
        pieces, rest = [], self.data
        for size in self.sizes:
            pieces.append(rest[:size])
            rest = rest[size:]
        return [piece for piece in (*pieces, rest) if piece]


def _find_pairs() -> list[Pair]:
    """Every client with every provider that can serve it."""
    clients = [Speaker(name, one) for name, it in dialects.items() for one in _PROTOCOLS if one in it.served]
    providers = [Speaker(name, one) for name, it in dialects.items() for one in _PROTOCOLS if one in it.called]
    return [
        Pair(client, provider)
        for client in clients
        for provider in providers
        if client.protocol == provider.protocol or find_bridge(client.protocol, [provider.protocol])
    ]


def recorded_streams(provider: Speaker) -> list[bytes]:
    """The recorded streams of a dialect; OpenAI's, if there are none of its own."""
    folder = _FIXTURES / provider.protocol / "fixtures" / "streams"
    paths = sorted(folder.glob(f"{provider.dialect}_*.sse")) or sorted(folder.glob("openai_*.sse"))
    return [path.read_bytes() for path in paths]


PAIRS = _find_pairs()
_STREAMS = {provider: recorded_streams(provider) for _, provider in PAIRS}


# Events


def _event(body: JsonValue, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


_ERROR = {"message": "Slow down.", "type": "rate_limit_error", "code": "rate_limit_exceeded", "param": None}
_PARAMETER = {"message": "too hot", "type": "invalid_request_error", "code": "invalid_value", "param": "temperature"}
_FOREIGN_EVENTS = [
    _event({"error": _ERROR}),
    _event({"error": _PARAMETER}),
    _event({"error": {**_PARAMETER, "param": "messages[0].content"}}),
    _event({"error": {**_PARAMETER, "param": "model"}}),
    _event({"error": {**_PARAMETER, "param": "stream_options.include_usage"}}),
    _event({"type": "error", **_PARAMETER, "param": "input", "sequence_number": 9}, "error"),
    _event({"error": "Engine callback timeout: server tokenTimeout", "error_type": "Server Error"}),
    _event({"error_code": "INVALID_PARAMETER_VALUE", "message": "top_p: must be at most 1"}),
    _event({"status": 503, "error": "Service Unavailable", "message": "Try later."}),
    _event({"type": "error", **_PARAMETER, "sequence_number": 9}, "error"),
    _event({"type": "error", "error": _ERROR, "sequence_number": 9}, "error"),
    b'data: {"id": "x", "choices": [\n\n',
    b"data: \xff\xfe\n\n",
    b"data: null\n\n",
    b"data: []\n\n",
    b"data:\n\n",
    b": a comment\n\n",
    b"Internal Server Error\n\n",
    b'{"error": {"message": "bare", "type": "server_error"}}\n',
    b"data: [DONE]\n\n",
    _event({"object": "chat.completion.chunk", "choices": []}),
    _event({"type": "response.unknown_thing", "sequence_number": 3}, "response.unknown_thing"),
]
_WRONG_VALUES = [None, "x", "", -1, 0.5, True, [], {}, [None], {"x": 1}]


def _split(data: bytes) -> list[bytes]:
    """The events with the blank lines that end them. Streams with other line ends are one piece."""
    return [event + b"\n\n" for event in data.split(b"\n\n") if event]


def _paths(value: JsonValue, before: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, one in items for path in ((*before, key), *_paths(one, (*before, key)))]


def _body(event: bytes) -> JsonValue:
    try:
        return json.loads(event.partition(b"data: ")[2])
    except ValueError:
        return None


def _with_value(body: JsonValue, path: tuple[str | int, ...], value: JsonValue) -> JsonValue:
    """A copy with another value, or without the key if the value is `...`."""
    changed = copy.deepcopy(body)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    if value is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return changed


# Tears


def _drop_event(events: list[bytes], draw: Draw) -> None:
    del events[draw(st.integers(0, len(events) - 1))]


def _repeat_event(events: list[bytes], draw: Draw) -> None:
    event = draw(st.sampled_from(events))
    events.insert(draw(st.integers(0, len(events))), event)


def _insert_event(events: list[bytes], draw: Draw) -> None:
    events.insert(draw(st.integers(0, len(events))), draw(st.sampled_from(_FOREIGN_EVENTS)))


def _spoil_field(events: list[bytes], draw: Draw) -> None:
    i = draw(st.integers(0, len(events) - 1))
    body = _body(events[i])
    if paths := _paths(body):
        head = events[i].partition(b"data: ")[0]
        spoiled = _with_value(body, draw(st.sampled_from(paths)), draw(st.sampled_from([..., *_WRONG_VALUES])))
        events[i] = head + _event(spoiled)


def _drop_done(events: list[bytes], draw: Draw) -> None:
    events[:] = [event for event in events if b"[DONE]" not in event] or events


def _drop_finish(events: list[bytes], draw: Draw) -> None:
    """No finish reason is left, and no event that says how a response ended."""
    kept = [event for event in events if b"response.completed" not in event and b"response.incomplete" not in event]
    for i, event in enumerate(kept):
        for finish in (path for path in _paths(_body(event)) if path[-1] == "finish_reason"):
            kept[i] = event.partition(b"data: ")[0] + _event(_with_value(_body(kept[i]), finish, None))
    events[:] = kept or events


_TEARS = (_drop_event, _repeat_event, _insert_event, _spoil_field, _drop_done, _drop_finish)


def _cut_bytes(data: bytes, draw: Draw) -> bytes:
    """All of it, or a beginning that ends at any byte or between two events."""
    where = draw(st.sampled_from(("nowhere", "byte", "event")))
    if where == "byte":
        return data[: len(data) - draw(st.integers(0, len(data)))]
    if where == "event":
        events = _split(data)
        return b"".join(events[: len(events) - draw(st.integers(0, len(events)))])
    return data


@st.composite
def torn_streams(draw: Draw) -> TornStream:
    pair = draw(st.sampled_from(PAIRS))
    events = _split(draw(st.sampled_from(_STREAMS[pair.provider])))
    for tear in draw(st.lists(st.sampled_from(_TEARS), max_size=2)):
        if events:
            tear(events, draw)
    data = _cut_bytes(b"".join(events), draw)
    framing = draw(st.sampled_from(FRAMINGS))
    return TornStream(
        pair,
        draw(st.sampled_from(POLICIES)),
        data,
        tuple(draw(st.lists(st.integers(1, 700), max_size=6))),
        framing,
        framing != "close" and draw(st.booleans()),
    )
