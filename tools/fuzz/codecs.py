"""What reads the bytes of providers, each as one function of bytes that fails if a law does not hold.

The first bytes of a case choose the dialect, the policy and the cuts into reads; the rest is read. The laws: nothing
is raised but what is documented, what is read does not depend on the cuts, every stream has exactly one terminal and it
comes last, every fault can be rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import count, product
from random import Random
from typing import NamedTuple, TypeAlias

import orjson

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.json_repair import parse_leniently
from dragoman.adapters.samples import load_sample
from dragoman.adapters.sse import Framer, Item, TooLong
from dragoman.adapters.streams import Chunk, End, PartlyRead, StreamReader, expand

from .mutations import mutate_events
from .pairs import list_pairs
from .sources import choose_reply, choose_stream

__all__ = ["CODECS", "Codec", "Law", "draw_case", "list_seeds"]

Law: TypeAlias = Callable[[bytes], None]
"""Reads one case. Raises AssertionError, or what the code raises although it must not."""

_HEAD = 4
"""Bytes at the beginning of a case: the dialect, the policy, the size of reads, and what else a codec chooses."""

_POLICIES = ("off", "report", "repair", "strict")
_STATUSES = (400, 401, 403, 404, 408, 413, 422, 429, 500, 503, 529, 200)
_LIMITS = (16, 1 << 20)
_MOST_STATUS = 600


class _Caller(NamedTuple):
    """A provider's dialect, as it is called in one protocol."""

    dialect: str
    protocol: str
    profile: str


class Codec(NamedTuple):
    """`check` fails if a law does not hold, `draw` gives what such bytes usually look like. `most_bytes` of a case are
    enough to reach every line."""

    check: Law
    draw: Callable[[Random], bytes]
    most_bytes: int


def _split(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@cache
def _list_callers(*protocols: str) -> tuple[_Caller, ...]:
    return tuple(
        _Caller(name, protocol, profile)
        for (name, dialect), protocol in product(dialects.items(), protocols)
        if protocol in dialect.called
        for profile in dialect.profiles
    )


def _create_context(caller: _Caller, policy: int) -> Context:
    replies = _POLICIES[policy % len(_POLICIES)]
    target = Target("up", profile=caller.profile, policy=Policy(replies=replies))  # type: ignore[arg-type]
    numbers = count()
    request = {"model": "m", "stream": True}
    call = Call("POST", "/", request)
    receipt = Receipt()
    return Context(
        caller.profile, call, receipt, target, request, lambda: 1.7e9, lambda prefix: f"{prefix}_{next(numbers):032x}"
    )


def check_frames(data: bytes) -> None:
    """Frame server-sent events."""
    _, _, size, limit, *_ = data[:_HEAD].ljust(_HEAD, b"\1")
    body, limit = data[_HEAD:], _LIMITS[limit % len(_LIMITS)]
    whole, pieces = _frame([body], limit), _frame(_split(body, size + 1), limit)
    if limit == max(_LIMITS):
        assert whole == pieces, f"the items depend on the cuts: {whole} {pieces}"


def _frame(reads: Iterable[bytes], limit: int) -> list[Item]:
    framer, items = Framer(limit), []
    try:
        for read in reads:
            items += framer.feed(read)
        items += framer.close()
    except TooLong:
        pass  # documented
    return items


def check_json(data: bytes) -> None:
    """Parse JSON that may need repair."""
    try:
        value, reasons = parse_leniently(data)
    except ValueError:
        return
    written = orjson.dumps(value)
    assert reasons or parse_leniently(written) == (value, []), "a value changes although nothing was repaired"


def check_error(data: bytes) -> None:
    """Read the body of an error, and write it for each kind of client."""
    which, status, kind, _, *_ = data[:_HEAD].ljust(_HEAD, b"\1")
    body = data[_HEAD:]
    callers = _list_callers("chat", "responses", "messages", "completions", "embeddings")
    caller = callers[which % len(callers)]
    try:
        parsed, _ = parse_leniently(body)
    except ValueError:
        parsed = None
    reply = Reply(_STATUSES[status % len(_STATUSES)], parsed if isinstance(parsed, dict) else {}, {}, body)
    ctx = _create_context(caller, kind)
    fault = dialects[caller.dialect].called[caller.protocol].read_fault(reply, ctx)
    assert isinstance(fault, Fault)
    assert reply.status >= _STATUSES[0] or fault.owner != "client" or fault.status, "a fault has a status"
    clients = list_pairs()
    client = clients[kind % len(clients)]
    rendered = client.create_pipeline(lambda *_: None).render_fault(fault)
    assert _STATUSES[0] <= rendered.status < _MOST_STATUS, rendered.status
    orjson.dumps(rendered.body)


def check_stream(protocol: str, data: bytes) -> None:
    """Read a stream of a provider that is called in the protocol."""
    which, policy, size, _, *_ = data[:_HEAD].ljust(_HEAD, b"\1")
    body, callers = data[_HEAD:], _list_callers(protocol)
    caller = callers[which % len(callers)]
    read = partial(_read_stream, caller, policy)
    whole = read([body])
    assert whole, "a stream has no terminal"
    assert [isinstance(one, Chunk) for one in whole] == [True] * (len(whole) - 1) + [False], "one terminal, the last"
    pieces = read(_split(body, size + 1))
    assert _describe(whole) == _describe(pieces), f"the outputs depend on the cuts: {whole} {pieces}"


def _read_stream(caller: _Caller, policy: int, reads: Iterable[bytes]) -> list[Chunk | End | Fault]:
    ctx = _create_context(caller, policy)
    reader = dialects[caller.dialect].called[caller.protocol].read_stream(ctx)
    try:
        return expand(output for outputs in _feed(reader, reads) for output in outputs)
    except PartlyRead as partly:
        raise partly.error from None


def _feed(reader: StreamReader, reads: Iterable[bytes]) -> Iterator[list[Chunk | End | Fault]]:
    for read in reads:
        yield reader.receive(read)  # type: ignore[misc]
    yield reader.close()  # type: ignore[misc]


def _describe(outputs: Iterable[Chunk | End | Fault]) -> list[object]:
    return [
        one.body if isinstance(one, Chunk) else (type(one).__name__, getattr(one, "code", None), str(one))
        for one in outputs
    ]


def _draw_stream(protocol: str, random: Random) -> bytes:
    pairs = [pair for pair in list_pairs(streamed=True) if pair.called == protocol]
    parts = choose_stream(random, random.choice(pairs)).parts
    return b"".join(parts[: random.choice((3, 6, 12, None))])


def _draw_reply(random: Random) -> bytes:
    return b"".join(choose_reply(random, random.choice(list_pairs())).parts)


def _draw_error(random: Random) -> bytes:
    pair = random.choice(list_pairs())
    return orjson.dumps(load_sample(pair.provider, pair.called)["error"]["body"])


CODECS: Mapping[str, Codec] = {
    "sse": Codec(check_frames, partial(_draw_stream, "chat"), 256),
    "json": Codec(check_json, _draw_reply, 1024),
    "errors": Codec(check_error, _draw_error, 1024),
    **{
        protocol: Codec(partial(check_stream, protocol), partial(_draw_stream, protocol), 2048)
        for protocol in ("chat", "responses", "messages", "completions")
    },
}
"""What is fuzzed, by name."""


def list_seeds(name: str, number: int = 64) -> list[bytes]:
    """Valid cases to begin with."""
    random = Random(name)
    has_head = name != "json"
    return [(random.randbytes(_HEAD) if has_head else b"") + CODECS[name].draw(random) for _ in range(number)]


def draw_case(name: str, random: Random) -> bytes:
    """A damaged case, for a run without coverage."""
    data = random.choice(list_seeds(name, 8)) if name == "json" else random.randbytes(_HEAD) + CODECS[name].draw(random)
    events = data.split(b"\n\n")
    for _ in range(random.choice((0, 1, 2))):
        events = mutate_events(random, events)
    data = b"\n\n".join(events)
    for _ in range(random.choice((0, 1, 3))):
        at = random.randrange(len(data) + 1)
        data = data[:at] + random.choice((b"", random.randbytes(2), b"\n", b'"', b"}", b"\\")) + data[at + 1 :]
    return data
