"""The pace of a run: a busy server is asked again as it says, and no case is judged by its refusal."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from dragoman.contract.exchange import DroppedError, Request, Response, SlowReplyError, UnreachableError
from dragoman.contract.fake_upstream import FakeUpstream
from dragoman.contract.pacing import Pacer, find_wait, is_busy
from dragoman.contract.runner import CaseRunner
from dragoman.contract.transport import HttpTransport

from .scripted import TARGET, ScriptedTransport, make_response, write_case


class Sleeps(list[float]):
    """Records how long each sleep would take."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def make_busy(status: int = 429, **headers: str) -> Response:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Response(status, (("content-type", "application/json"), *pairs))


def make_runner(
    transport: ScriptedTransport, sleeps: Sleeps, *, delay: float = 0.0, max_wait: float = 60.0
) -> CaseRunner:
    return CaseRunner(TARGET, transport, pacer=Pacer(delay, max_wait, sleep=sleeps))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0.25"}, 0.25),
        ({"retry_after_ms": "1500", "retry_after": "2"}, 1.5),
        ({"x_ratelimit_reset_requests": "1m30s"}, 90.0),
        ({"x_ratelimit_reset_tokens": "250ms"}, 0.25),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_wait_is_read_from_every_form_of_the_header(headers: dict[str, str], seconds: float | None) -> None:
    assert find_wait(make_busy(**headers)) == seconds


def test_wait_may_be_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert find_wait(make_busy(retry_after=date)) == pytest.approx(30, abs=2)


def test_service_unavailable_asks_to_wait_only_with_retry_after() -> None:
    assert is_busy(make_busy(503, retry_after="1"))
    assert not is_busy(make_busy(503))
    assert not is_busy(make_busy(500, retry_after="1"))


@pytest.mark.parametrize("status", [429, 503])
async def test_request_is_sent_again_after_the_time_that_the_server_names(tmp_path: Path, status: int) -> None:
    sleeps = Sleeps()
    transport = ScriptedTransport(make_busy(status, retry_after="7"), make_response(id="x"))
    result = await make_runner(transport, sleeps).run_case(write_case(tmp_path))
    assert (result.verdict, result.attempts, len(transport.requests)) == ("pass", 1, 2)
    assert sleeps == [pytest.approx(7, abs=0.5)]


async def test_seconds_of_waiting_are_counted(tmp_path: Path) -> None:
    runner = make_runner(
        ScriptedTransport(make_busy(retry_after="7"), make_busy(retry_after="2"), make_response()), Sleeps()
    )
    await runner.run_case(write_case(tmp_path))
    assert runner.pacer.waited == 9


async def test_server_that_stays_busy_is_an_error_and_ends_the_run(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name) for name in ("one", "two", "three")]
    transport = ScriptedTransport(make_busy(retry_after="25"))
    results = await make_runner(transport, Sleeps()).run_cases(cases)
    assert [result.verdict for result in results] == ["error", "error", "skip"]
    assert results[0].reason == "the server is busy: 429, retry-after: 25, after 50 s of waiting (--max-wait)"
    assert results[0].steps[0].exchange is not None
    assert "was too busy 2 times in a row" in results[2].reason
    assert len(transport.requests) == 6


async def test_case_that_expects_the_refusal_gets_it(tmp_path: Path) -> None:
    case = write_case(tmp_path, status=429)
    sleeps = Sleeps()
    result = await make_runner(ScriptedTransport(make_busy(retry_after="9")), sleeps).run_case(case)
    assert (result.verdict, sleeps) == ("pass", [])


async def test_proxy_that_calls_its_provider_is_judged_and_one_that_does_not_is_asked_again(tmp_path: Path) -> None:
    """A proxy in a cooldown says 429 itself; a proxy whose provider says 429 passes that on."""
    sleeps, transport = Sleeps(), ScriptedTransport(make_busy(retry_after="1"), make_response(id="x"))
    async with FakeUpstream("openai") as fake:
        runner = CaseRunner(TARGET, transport, fake, pacer=Pacer(0, 60, sleep=sleeps))
        assert (await runner.run_case(write_case(tmp_path))).verdict == "pass"
    assert len(sleeps) == 1


async def test_delay_separates_requests(tmp_path: Path) -> None:
    sleeps = Sleeps()
    cases = [write_case(tmp_path, name, body=f"user: {name}") for name in ("one", "two", "three")]
    await make_runner(ScriptedTransport(make_response(id="x")), sleeps, delay=10).run_cases(cases)
    assert sleeps == [pytest.approx(10, abs=0.5), pytest.approx(20, abs=0.5)]


async def test_used_up_allowance_holds_the_next_request_back(tmp_path: Path) -> None:
    sleeps = Sleeps()
    spent = Response(
        200,
        (("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "4s")),
        make_response(id="x").chunks,
    )
    cases = [write_case(tmp_path, name, body=f"user: {name}") for name in ("one", "two")]
    await make_runner(ScriptedTransport(spent, make_response(id="x")), sleeps).run_cases(cases)
    assert sleeps == [pytest.approx(4, abs=0.5)]


class SlowTransport(ScriptedTransport):
    """A transport whose requests never get a reply."""

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        raise SlowReplyError("no reply within 60 s")


async def test_slow_server_is_not_called_unreachable(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name, body=f"user: {name}") for name in ("one", "two", "three", "four", "five")]
    results = await CaseRunner(TARGET, SlowTransport(make_response())).run_cases(cases)
    assert [result.verdict for result in results] == ["error"] * 4 + ["skip"]
    assert "the endpoint was too slow 4 times in a row, last in chat/text/four" in results[4].reason


async def test_server_that_crashes_on_some_requests_is_asked_the_others(tmp_path: Path) -> None:
    """Each of its handlers' exceptions closes a connection."""
    cases = [write_case(tmp_path, name, body=f"user: {name}") for name in ("one", "two", "three", "four", "five")]
    crashes = [DroppedError("Server disconnected")] * 3
    transport = ScriptedTransport(make_response(id="x"), *crashes, make_response(id="x"))
    results = await CaseRunner(TARGET, transport).run_cases(cases)
    assert [result.verdict for result in results] == ["pass", "error", "error", "error", "pass"]


async def test_server_that_closes_every_connection_is_not_called_unreachable(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name, body=f"user: {name}") for name in ("one", "two", "three")]
    results = await CaseRunner(TARGET, ScriptedTransport(DroppedError("Server disconnected"))).run_cases(cases)
    assert [result.verdict for result in results] == ["error", "error", "skip"]
    assert "the endpoint closed the connection 2 times in a row" in results[2].reason


async def test_closed_connection_is_told_from_one_that_is_refused() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = HttpTransport()
    async with server:
        with pytest.raises(DroppedError):
            await transport.send(Request("POST", f"http://127.0.0.1:{port}/", "/", {}, b"{}"))
    with pytest.raises(UnreachableError) as caught:
        await transport.send(Request("POST", f"http://127.0.0.1:{port}/", "/", {}, b"{}"))
    assert not isinstance(caught.value, DroppedError)
    await transport.close()
