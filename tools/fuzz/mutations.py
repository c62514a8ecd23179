"""Small damage to JSON values, to JSON texts and to streams of events. Every function returns something new."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

from dragoman.adapters.common.finish_words import ENDINGS
from dragoman.adapters.paths import Path

__all__ = ["EVENTS", "encode_json", "list_places", "mutate_events", "mutate_value", "remove_place"]

_DEEP: Any = []
for _ in range(200):
    _DEEP = [_DEEP]

ODD: tuple[Any, ...] = (
    None, [], {}, "x", "", 0, -1, 1, True, False, 1.5, 1e30, 2**63, 2**64, -(2**63) - 1, [1], ["x"], {"a": 1}, [None],
    [[]], [{}], [{"type": "text"}], [{"type": []}], {"type": "text", "text": 1}, float("nan"), float("-inf"), 1e-320,
    "stop", "tool_calls", "error", "[DONE]", "\ud800", "a\udfffb", "\x00", "é" * 3, "x" * 5000, 10**40,
)  # fmt: skip
_FINISHES: tuple[Any, ...] = (*ENDINGS, "wat", "", None, ["stop"], {"type": "stop"}, 1, "STOP", "error")
_KEYS = ("x_vendor", "error", "type", "a.b", "ключ", "", "content", "index", "0")


def list_places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all values inside a value."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from list_places(child, (*path, key))


def remove_place(value: Any, path: Path) -> Any:
    """A copy without the value at the path."""
    copy = deepcopy(value)
    del _holder(copy, path)[path[-1]]
    return copy


def mutate_value(random: Random, value: Any) -> Any:
    """A copy with one place altered."""
    places = list(list_places(value))
    if not places:
        return deepcopy(random.choice(ODD))
    copy, path = deepcopy(value), random.choice(places)
    random.choice(_CHANGES)(random, _holder(copy, path), path[-1])
    return copy


def _holder(value: Any, path: Path) -> Any:
    for part in path[:-1]:
        value = value[part]
    return value


def _delete(random: Random, holder: Any, key: Any) -> None:
    del holder[key]


def _set_odd(random: Random, holder: Any, key: Any) -> None:
    words = _FINISHES if key in ("finish_reason", "status", "reason") and random.random() < 0.8 else ODD
    holder[key] = deepcopy(random.choice(words))


def _set_null(random: Random, holder: Any, key: Any) -> None:
    holder[key] = None


def _change_type(random: Random, holder: Any, key: Any) -> None:
    value = holder[key]
    holder[key] = random.choice((str(value), [value], {"value": value}, not value, len(str(value))))


def _add_key(random: Random, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder.insert(random.randrange(len(holder) + 1), deepcopy(random.choice((*ODD, *holder))))
    else:
        holder[random.choice(_KEYS)] = deepcopy(random.choice(ODD))


def _reorder(random: Random, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        random.shuffle(holder)
        return
    items = list(holder.items())
    random.shuffle(items)
    holder.clear()
    holder.update(items)


def _deepen(random: Random, holder: Any, key: Any) -> None:
    holder[key] = random.choice((_DEEP, [holder[key]] * 50, "z" * 20_000))


def _move(random: Random, holder: Any, key: Any) -> None:
    """Give the key another name, or swap two items."""
    if isinstance(holder, list):
        other = random.randrange(len(holder))
        holder[key], holder[other] = holder[other], holder[key]
    else:
        holder[random.choice((f"{key}_", key.upper(), *_KEYS))] = holder.pop(key)


_CHANGES = (_delete, _set_odd, _set_odd, _set_null, _change_type, _add_key, _add_key, _reorder, _deepen, _move)


def encode_json(value: Any, form: str, at: float) -> bytes:
    """The JSON text of a value in one of ENCODINGS; `at` is where damage is done, 0 to 1."""
    separators = (",", ":") if form == "compact" else None
    data = json.dumps(value, ensure_ascii=form == "ascii", separators=separators).encode("utf-8", "surrogatepass")
    place = int(at * len(data))
    damage = _ENCODE.get(form)
    return data if damage is None else damage(data, place)


def _flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x20 if at % 2 else 0xFF]) + data[at + 1 :] if at < len(data) else data


_ENCODE: dict[str, Callable[[bytes, int], bytes]] = {
    "bom": lambda data, at: b"\xef\xbb\xbf" + data,
    "utf-16": lambda data, at: data.decode("utf-8", "replace").encode("utf-16"),
    "cut": lambda data, at: data[:at],
    "flip": _flip,
    "twice": lambda data, at: data + data,
    "gzip": lambda data, at: gzip.compress(data, mtime=0),
    "torn gzip": lambda data, at: gzip.compress(data, mtime=0)[: max(at, 1)],
    "latin": lambda data, at: data.decode("utf-8", "replace").encode("latin-1", "replace"),
    "duplicate": lambda data, at: data[:1] + b'"model": 1, ' + data[1:] if data[:1] == b"{" else data,
}

# Streams

EVENTS: tuple[bytes, ...] = (
    b": ping\n\n", b"data:\n\n", b"data: {}\n\n", b"data: null\n\n", b"event: ping\ndata: {}\n\n", b"data: [DONE]\n\n",
    b"\n\n", b": OPENROUTER PROCESSING\n\n", b"id: 3\nretry: 10\n\n", b"data: []\n\n", b"data: \xff\xfe\n\n",
    b'data: {"error": {"message": "boom", "type": "server_error", "code": "e", "param": "temperature"}}\n\n',
    b'data: {"error": {"message": "boom", "code": 400, "param": "messages[0].content"}}\n\n',
    b'data: {"error_code": "INVALID_PARAMETER_VALUE", "message": "top_p: must be at most 1"}\n\n',
    b'event: error\ndata: {"type": "error", "message": "no", "code": null, "param": "input", "sequence_number": 1}\n\n',
    b'data: {"detail": [{"loc": ["body", "model"], "msg": "bad", "type": "value_error"}]}\n\n',
    b"event: error\ndata: overloaded\n\n", b"Internal Server Error\n\n", b'{"error": "bare"}\n', b"data: {\n\n",
    b'data: {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}\n\n',
    b'data: {"type": "response.unknown_thing", "sequence_number": 3}\n\n', b'data: {"id": "x", "choices": [\n\n',
)  # fmt: skip


def mutate_events(random: Random, events: Sequence[bytes]) -> list[bytes]:
    """The events, each a text with its blank line, with one of them damaged, moved or added."""
    some = list(events)
    at = random.randrange(len(some)) if some else 0
    kind = random.random()
    if not some or kind < 0.2:
        some.insert(random.randrange(len(some) + 1), random.choice(EVENTS))
    elif kind < 0.3:
        del some[at]
    elif kind < 0.4:
        some.insert(random.randrange(len(some) + 1), some[at])
    elif kind < 0.45:
        other = random.randrange(len(some))
        some[at], some[other] = some[other], some[at]
    elif kind < 0.55:
        some[at] = random.choice(_REFRAMES)(some[at])
    else:
        some[at] = _mutate_data(random, some[at])
    return some


def _mutate_data(random: Random, event: bytes) -> bytes:
    head, mark, text = event.partition(b"data:")
    try:
        value = json.loads(text)
    except ValueError:
        return event
    value = mutate_value(random, value)
    form = random.choice(("plain", "plain", "ascii", "compact", "flip", "cut", "duplicate"))
    return head + mark + b" " + encode_json(value, form, random.random()) + b"\n\n"


_REFRAMES: tuple[Callable[[bytes], bytes], ...] = (
    lambda event: event.replace(b"\n", b"\r\n"),
    lambda event: event.replace(b"\n", b"\r"),
    lambda event: event.replace(b"data: ", b"data:"),
    lambda event: event.rstrip(b"\n") + b"\n",  # two events become one with two lines of data
    lambda event: event.rstrip(b"\n"),
    lambda event: event.replace(b", ", b",\ndata: "),
    lambda event: b"event: message\n" + event,
    lambda event: b"\xef\xbb\xbf" + event,
    lambda event: event.replace(b"data: ", b""),
    lambda event: event.rstrip(b"\n") + b"\n: beat\n\n",
)
