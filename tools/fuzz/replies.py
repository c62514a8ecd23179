"""Generated replies and streams: fed to the pipeline as a whole and in random pieces."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

import orjson

from dragoman.adapters.call import JsonObject, Target
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt, Output, Pipeline
from dragoman.adapters.responses.stored import StoredResponse

from .answer_laws import judge_answer
from .laws import Finding, Observer, find_bad_path, find_bad_rendering, take_snapshot
from .mutations import encode_json, list_places, mutate_events, mutate_value, remove_place
from .pairs import STREAMED, Pair, choose_target
from .requests import draw_valid_request, load_plain_request
from .short_way import compare_short_way
from .sources import choose_reply, choose_stream

__all__ = ["ReplyCase", "draw_reply", "draw_stream"]

_FORMS = ("plain", "plain", "ascii", "compact", "bom", "utf-16", "cut", "flip", "twice", "latin", "duplicate")
_TYPES = ("text/event-stream", "application/json", "text/plain", "application/octet-stream", "text/html", "", "x")
_STATUSES = (200, 200, 200, 201, 206, 204, 301, 400, 401, 404, 413, 422, 429, 500, 503, 529, 0)
_ID = re.compile(rb"_(?:[0-9a-f]{44}|[0-9a-f]{32})")
_BROKEN = Fault("upstream_unreachable", "provider: the connection broke", code="upstream_disconnected")


class Result(NamedTuple):
    """What must be the same however the bytes are cut into reads."""

    state: str
    fault: str
    status: int
    data: bytes


@dataclass(frozen=True)
class ReplyCase:
    """What a provider sends to one request of a client. `pieces` seeds the cuts into reads."""

    pair: Pair
    target: Target
    request: JsonObject
    status: int
    headers: tuple[tuple[str, str], ...]
    parts: tuple[bytes, ...]
    pieces: int
    cut_at: int | None = None
    is_broken: bool = False
    has_store: bool = False

    @property
    def body(self) -> bytes:
        data = b"".join(self.parts)[: self.cut_at]
        return gzip.compress(data, mtime=0) if dict(self.headers).get("content-encoding") == "gzip" else data

    def check(self) -> list[Finding]:
        return self.run()[1]

    def run(self) -> tuple[str, list[Finding]]:
        observer = Observer()
        try:
            whole = self._feed([self.body], observer)
            if whole is None:
                return "refused", observer.findings
            for cuts in (1, 4, 40):
                again = self._feed(self._split(cuts), Observer())
                if again != whole:
                    text = f"{_explain_difference(whole, again)}"
                    observer.add("splits do not matter", f"{self.pair.called} {whole.state}", text)
                    break
        except Exception as error:  # noqa: BLE001 - anything but a Fault is a finding
            observer.add_error("nothing is raised", error)
            return "crashed", observer.findings
        return whole.state, observer.findings

    def _split(self, cuts: int) -> list[bytes]:
        random, body = Random(f"{self.pieces} {cuts}"), self.body
        places = sorted(random.randrange(len(body) + 1) for _ in range(cuts))
        return [body[a:b] for a, b in zip([0, *places], [*places, None], strict=True)]

    def _feed(self, reads: Sequence[bytes], observer: Observer) -> Result | None:
        """Feed every call of the request with the same reply. None if the request is refused."""
        pipeline = self.pair.create_pipeline(observer.report_defect, has_store=self.has_store)
        try:
            pipeline.receive(orjson.dumps(self.request))
            attempt = self.pair.prepare(pipeline, self.target)
        except Fault:
            return None
        before = take_snapshot([pipeline.call.body, pipeline.request, [one.call.body for one in attempt.calls]])
        known = len(attempt.receipt.changes)
        data, record = _feed_calls(attempt, self, reads)
        if before != take_snapshot([pipeline.call.body, pipeline.request, [one.call.body for one in attempt.calls]]):
            observer.add("nothing alters the request", str(self.pair), "")
        fault = attempt.outcome.fault
        if attempt.outcome.state == "open":
            observer.add("every attempt ends", str(self.pair), repr(attempt.outcome))
        if fault is not None:
            self._judge_fault(pipeline, attempt, fault, observer)
        sent = b"".join(self.parts) if self.cut_at is None and not dict(self.headers).get("content-encoding") else b""
        if not self.is_broken:
            reply = (self.status, dict(self.headers), self.body)
            given = (self.pair, self.target, self.request, reply)
            compare_short_way(*given, pipeline, attempt, data, record, observer, has_store=self.has_store)
        judge_answer(self.pair, self.target, attempt, data, sent, attempt.receipt.changes[known:], observer)
        return Result(attempt.outcome.state, _describe(fault), attempt.answer.status, _number_ids(data))

    def _judge_fault(self, pipeline: Pipeline, attempt: Attempt, fault: Fault, observer: Observer) -> None:
        if (path := find_bad_path(fault, self.request)) is not None:
            observer.add("paths are the client's", f"{fault.kind} {fault.code}", f"{path}: {fault.message}")
        if not attempt.answer.has_begun:
            text = find_bad_rendering(self.pair, pipeline, fault)
            if text is not None:
                observer.add("errors fit the client's dialect", f"{self.pair.client} {fault.kind}", text)

    def simplify(self) -> Iterator[ReplyCase]:
        yield from self._simplify_around()
        size = len(self.parts)
        for length in (size // 2, size // 4, 1):
            for at in range(0, size, length) if length else ():
                yield replace(self, parts=self.parts[:at] + self.parts[at + length :])
        for i, part in enumerate(self.parts):
            for smaller in _simplify_part(part):
                yield replace(self, parts=(*self.parts[:i], smaller, *self.parts[i + 1 :]))
        for place in sorted(list_places(self.request), key=len):
            if place[0] not in ("model", "stream"):
                yield replace(self, request=remove_place(self.request, place))

    def _simplify_around(self) -> Iterator[ReplyCase]:
        if self.has_store or self.is_broken or self.cut_at is not None:
            yield replace(self, has_store=False, is_broken=False, cut_at=None)
            yield replace(self, has_store=False)
            yield replace(self, is_broken=False)
        if self.status != 200:
            yield replace(self, status=200)
        if self.target.lacks or self.target.reasoning_tags:
            yield replace(self, target=replace(self.target, lacks=frozenset(), reasoning_tags=False))

    def describe(self) -> str:
        extras = f"cut_at={self.cut_at} is_broken={self.is_broken} has_store={self.has_store}"
        head = f"{self.pair}\n{self.target}\n{json.dumps(self.request)}\n{self.status} {dict(self.headers)} {extras}"
        return "\n".join([head, *map(repr, self.parts)])


def _feed_calls(attempt: Attempt, case: ReplyCase, reads: Sequence[bytes]) -> tuple[bytes, StoredResponse | None]:
    """The client's bytes, and the record that was saved before them."""
    data, record, queue = b"", None, list(attempt.calls)
    while queue:
        number = queue.pop(0).number
        outputs = [attempt.start_reply(number, case.status, dict(case.headers))]
        for read in reads:
            while attempt.is_reading(number):
                outputs.append(attempt.feed(number, read))
                read = b""
                if not outputs[-1].more:
                    break
        if attempt.is_reading(number):
            outputs.append(attempt.close(number, _BROKEN if case.is_broken else None))
        for output in outputs:
            data += output.data + _save(attempt, output).data
            record = output.record or record
            queue += output.calls
    return data, record


def _number_ids(data: bytes) -> bytes:
    """Number dragoman's ids by their first appearance: reads of another size make them in another order."""
    numbers: dict[bytes, bytes] = {}
    return _ID.sub(lambda found: numbers.setdefault(found[0], b"_%d" % len(numbers)), data)


def _save(attempt: Attempt, output: Output) -> Output:
    is_held = output.record is not None and attempt.outcome.state == "open"
    return attempt.confirm_save() if is_held else Output()


def _simplify_part(part: bytes) -> Iterator[bytes]:
    head, mark, text = part.partition(b"data:") if b"data:" in part[:40] else (b"", b"", part)
    try:
        value = json.loads(text)
    except ValueError:
        return
    for place in sorted(list_places(value), key=len):
        shorter = json.dumps(remove_place(value, place)).encode()
        yield head + mark + b" " + shorter + b"\n\n" if mark else shorter


def _describe(fault: Fault | None) -> str:
    return "" if fault is None else f"{fault.kind} {fault.code} {fault.path} {fault.message}"


def _explain_difference(one: Any, other: Any) -> str:
    if other is None:
        return "refused the second time"
    return "; ".join(f"{name}: {a!r} != {b!r}" for name, a, b in zip(Result._fields, one, other, strict=True) if a != b)


def draw_reply(random: Random, pair: Pair) -> ReplyCase:
    """A whole reply, altered or not, to a request for a whole reply; a stream now and then."""
    source = choose_reply(random, pair)
    try:
        value = json.loads(source.parts[0])
    except ValueError:
        value = None
    data = source.parts[0]
    if value is not None:
        for _ in range(random.choice((0, 1, 1, 2, 3))):
            value = mutate_value(random, value)
        data = encode_json(value, random.choice(_FORMS) if random.random() < 0.2 else "plain", random.random())
    return _draw_case(random, pair, source.status, source.headers, (data,), asks_stream=random.random() < 0.15)


def draw_stream(random: Random, pair: Pair) -> ReplyCase:
    """A stream, altered or not, to a request for a stream; to one for a whole reply now and then."""
    source = choose_stream(random, pair)
    events: Sequence[bytes] = source.parts
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        events = mutate_events(random, events)
    asks_stream = random.random() < 0.9
    return _draw_case(random, pair, source.status, source.headers, tuple(events), asks_stream=asks_stream)


def _draw_case(
    random: Random, pair: Pair, status: int, headers: JsonObject, parts: tuple[bytes, ...], *, asks_stream: bool
) -> ReplyCase:
    request = draw_valid_request(random, pair) if random.random() < 0.3 else load_plain_request(pair)
    if pair.spoken in STREAMED:
        request["stream"] = asks_stream
    headers = {**headers}
    if random.random() < 0.1:
        headers["content-type"] = random.choice(_TYPES)
    if random.random() < 0.05:
        headers["content-encoding"] = random.choice(("gzip", "gzip", "br", "identity"))
    size = sum(map(len, parts))
    return ReplyCase(
        pair,
        choose_target(random, pair),
        request,
        random.choice(_STATUSES) if random.random() < 0.05 else status,
        tuple(headers.items()),
        parts,
        random.randrange(1 << 30),
        random.randrange(size + 1) if random.random() < 0.1 else None,
        random.random() < 0.05,
        random.random() < 0.5,
    )
