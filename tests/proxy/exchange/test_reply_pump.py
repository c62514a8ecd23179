"""The pump of a reply: what the connection's callback has fed is never lost, whatever wakes the task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest

import dragoman
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt, Output, PlannedCall
from dragoman.proxy.exchange.context import RequestContext
from dragoman.proxy.exchange.downstream import DownstreamResponse
from dragoman.proxy.exchange.reply_pump import ReplyPump
from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.telemetry.sent_secrets import SentSecrets
from dragoman.proxy.upstreams.interface import UpstreamResponse

HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":'
FIRST = HEAD + b'{"role":"assistant","content":"a"},"finish_reason":null}]}\n\n'
SECOND = HEAD + b'{"content":"b"},"finish_reason":null}]}\n\n'
LAST = HEAD + b'{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
LATE = Fault("upstream_timeout", "the upstream fell silent", code="upstream_idle_timeout")


def create_attempt() -> Attempt:
    dialect = dragoman.dialects["openai"]
    route = dragoman.Route(dialect, "chat", dialect.served["chat"], "actual")
    plan = dragoman.plan_target("p", dialect, ["chat"], dragoman.Target("model"))
    request = {"model": "model", "messages": [], "stream": True}
    return dragoman.Pipeline(route, dragoman.Call("POST", "/", {})).expect_reply(plan, request)


class Reply(UpstreamResponse):
    """Has `first` to be read, and delivers `rest`; then `interrupt` is called, before the task wakes."""

    status = 200
    headers = {"content-type": "text/event-stream"}  # noqa: RUF012 - never altered
    sent_secrets = ()
    is_at_end = False

    def __init__(self, first: bytes, rest: list[bytes], interrupt: Callable[[], None] | None = None) -> None:
        self.parts: Iterator[bytes] = iter([first])
        self.rest = rest
        self.interrupt = interrupt

    async def read_chunk(self) -> bytes:
        return next(self.parts, b"")

    async def deliver(self, take: Callable[[bytes], bool]) -> None:
        while self.rest and take(self.rest.pop(0)):
            pass
        if self.interrupt is not None:
            self.interrupt()
            await asyncio.sleep(60)

    def finish(self) -> None: ...

    def close(self) -> None: ...


class Client(DownstreamResponse):
    """Keeps what is written at once; `is_ready` says whether anything is."""

    def __init__(self, *, is_ready: bool = True) -> None:
        self.written: list[bytes] = []
        self.is_ready = is_ready

    def write_now(self, data: bytes) -> bool:
        if self.is_ready:
            self.written.append(data)
        return self.is_ready


async def pump(reply: Reply, client: Client, attempt: Attempt, secrets: tuple[bytes, ...] = ()) -> list[bytes]:
    """What the task had to write."""
    sent = SentSecrets()
    sent.add(secrets)
    context = SimpleNamespace(deadline=Deadline(), sent_secrets=sent, record=SimpleNamespace(events=0), worker=None)
    by_task: list[bytes] = []
    if reply.interrupt is not None:
        reply.interrupt = lambda: context.deadline.interrupt(LATE)

    async def handle(output: Output) -> tuple[PlannedCall, ...]:
        by_task.append(output.data)
        return output.calls

    made = ReplyPump(cast(RequestContext, context), attempt, 0, reply, None, client)
    await made.run(handle, 60.0, ending=None, is_single=True)
    return by_task


async def test_events_of_a_stream_are_written_without_the_task() -> None:
    client, attempt = Client(), create_attempt()
    by_task = await pump(Reply(FIRST, [SECOND, SECOND, LAST, DONE]), client, attempt)
    assert client.written == [SECOND, SECOND], "each as it came"
    assert by_task == [FIRST, LAST + DONE], "how a stream begins and ends is the task's work"
    assert attempt.outcome.state == "complete"


async def test_a_client_that_reads_slowly_is_waited_for_by_the_task() -> None:
    client, attempt = Client(is_ready=False), create_attempt()
    by_task = await pump(Reply(FIRST, [SECOND, SECOND, LAST, DONE]), client, attempt)
    assert by_task == [FIRST, SECOND, SECOND, LAST + DONE]
    assert client.written == []
    assert attempt.outcome.state == "complete"


async def test_a_repeated_credential_is_left_to_the_task_which_masks() -> None:
    secret = b"a-secret-of-the-call-0001"
    client, attempt = Client(), create_attempt()
    told = SECOND.replace(b'"b"', b'"' + secret + b'"')
    by_task = await pump(Reply(FIRST, [SECOND, told, DONE]), client, attempt, (secret,))
    assert client.written == [SECOND]
    assert told in by_task


async def test_an_end_that_came_before_the_deadline_counts() -> None:
    client, attempt = Client(), create_attempt()
    by_task = await pump(Reply(FIRST, [LAST, DONE], lambda: None), client, attempt)
    assert by_task == [FIRST, LAST + DONE]
    assert attempt.outcome.state == "complete"


@pytest.mark.parametrize("is_ready", [True, False])
async def test_an_event_that_came_before_the_deadline_is_written(is_ready: bool) -> None:
    client, attempt = Client(is_ready=is_ready), create_attempt()
    first, *rest = await pump(Reply(FIRST, [SECOND], lambda: None), client, attempt)
    written = [first, *client.written, *rest]
    assert written[:2] == [FIRST, SECOND]
    assert b"upstream_idle_timeout" in written[2]
    assert attempt.outcome.fault is LATE
