"""Traces the parts of a reply to the clients of each dialect."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dragoman.adapters.call import Call, Context, JsonObject, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.paths import Path, format_path, lookup
from dragoman.adapters.sse import Event, Framer
from dragoman.adapters.streams import Chunk, End, Output

from .markdown import code, table
from .other_samples import TEXTS, VECTORS, text_chunks, text_reply, vector_reply
from .reply_samples import SAMPLES, reply_chunks, whole_reply
from .trials import CARRIED, MODEL, Client, leaves
from .words import literal

__all__ = ["reply_table", "stream_table"]

_Fate: TypeAlias = Callable[[Client, str, JsonObject, Path], str]


@dataclass(frozen=True, slots=True)
class _Answers:
    """The samples of one protocol, how to make a whole reply in hub form of one, and chunks if the protocol streams."""

    samples: Mapping[str, tuple[JsonObject, Path]]
    reply: Callable[[JsonObject], JsonObject]
    chunks: Callable[[JsonObject], Iterable[JsonObject]] = lambda whole: ()


_ANSWERS = {
    "chat": _Answers(SAMPLES, whole_reply, reply_chunks),
    "completions": _Answers(TEXTS, text_reply, text_chunks),
    "embeddings": _Answers(VECTORS, vector_reply),
}


def reply_table(clients: Sequence[Client], protocol: str = "chat") -> list[str]:
    """The lines of the table of whole replies; clients with equal columns share one."""
    return _table(clients, protocol, _reply_fate)


def stream_table(clients: Sequence[Client], protocol: str = "chat") -> list[str]:
    """The same for streams."""
    return _table(clients, protocol, _stream_fate)


def _table(clients: Sequence[Client], protocol: str, fate: _Fate) -> list[str]:
    answers = _ANSWERS[protocol]
    columns: dict[tuple[str, ...], list[Client]] = {}
    for client in clients:
        cells = [fate(client, protocol, answers.reply(part), path) for part, path in answers.samples.values()]
        columns.setdefault((client.dialect.name, *cells), []).append(client)
    titles = ["In the hub", *map(_title, columns.values())]
    rows = [[label, *(cells[i] for cells in columns)] for i, label in enumerate(answers.samples, 1)]
    return table(titles, [row for row in rows if set(row[1:]) != {CARRIED}])


def _title(group: list[Client]) -> str:
    name, profiles = group[0].dialect.name, [code(client.profile) for client in group]
    return name if len(profiles) == len(group[0].dialect.profiles) else f"{name}, {' and '.join(profiles)}"


def _reply_fate(client: Client, protocol: str, answer: JsonObject, path: Path) -> str:
    ctx = _context(client)
    body = client.dialect.served[protocol].write_reply(copy.deepcopy(answer), ctx).body
    return _word(lookup(answer, path), path, [body], ctx.receipt)


def _stream_fate(client: Client, protocol: str, answer: JsonObject, path: Path) -> str:
    value = lookup(answer, path)
    if value is None:
        return CARRIED  # an absent value cannot be lost
    ctx = _context(client)
    writer = client.dialect.served[protocol].write_stream(ctx)
    outputs: list[Output] = [*map(Chunk, _ANSWERS[protocol].chunks(answer)), End()]
    sent = b"".join(map(writer.write, outputs))
    data = [item.data for item in Framer().feed(sent) if isinstance(item, Event)]
    events = [_as_message(json.loads(text)) for text in data if text != b"[DONE]"]
    word = _word(value, path, events, ctx.receipt)
    is_with_finish = any(event["choices"] and event.get("usage") for event in events)
    return "with the finish reason" if path == ("usage",) and word == CARRIED and is_with_finish else word


def _context(client: Client) -> Context:
    return Context(client.profile, Call("POST", "/", {}), Receipt(), Target(MODEL))


def _as_message(event: JsonObject) -> JsonObject:
    """Move the choices of an event to their places in a whole reply."""
    choices: list[Any] = [{}] * (1 + max((choice["index"] for choice in event["choices"]), default=-1))
    for choice in event["choices"]:
        choices[choice["index"]] = {("message" if key == "delta" else key): value for key, value in choice.items()}
    return {**event, "choices": choices}


def _word(value: Any, path: Path, bodies: list[JsonObject], receipt: Receipt) -> str:
    found = [leaf for body in bodies for leaf in leaves(body, ())]
    fates = [_fate_of(place, one, found, receipt) for place, one in leaves(value, path)]
    return next((fate for fate in fates if fate != CARRIED), CARRIED)


def _fate_of(path: Path, value: Any, found: list[tuple[Path, Any]], receipt: Receipt) -> str:
    if (path, value) in found:
        return CARRIED
    for place, other in found:
        if other is None:
            continue
        if other == value:
            return f"as {_format_path(place)}"
        if isinstance(value, str) and isinstance(other, str) and value in other:
            return f"inside {_format_path(place)}"
        if place == path:
            return literal(other)
    return "lost" if any(path[: len(place)] == place for place in _dropped_paths(receipt)) else "left out"


def _dropped_paths(receipt: Receipt) -> list[Path]:
    befores = [change.before for change in receipt.changes if change.action == "dropped"]
    return [tuple("message" if part == "delta" else part for part in before) for before in befores]


def _format_path(place: Path) -> str:
    text = re.sub(r"\[\d+\]", "[]", format_path(place))
    return code(text.removeprefix("choices[].message."))
