"""The case runner: verdicts, retries, and the end of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.contract.exchange import Chunk, Response, UnreachableError
from dragoman.contract.fake_upstream import FakeUpstream
from dragoman.contract.json_types import JsonValue

from .scripted import SECOND_STEP, ScriptedTransport, make_response, run_cases, write_case


@pytest.mark.parametrize(
    ("level", "expect", "verdict"),
    [
        ("MUST", "checks: [{present: [id]}]", "pass"),
        ("MUST", "checks: [{present: [gone]}]", "fail"),
        ("SHOULD", "checks: [{present: [gone]}]", "warn"),
        ("MUST", "should: [{present: [gone]}]", "warn"),
        ("MUST", "cooperation: [{present: [gone]}], checks: [{present: [gone]}]", "inconclusive"),
    ],
)
async def test_level_decides_the_verdict(tmp_path: Path, level: str, expect: str, verdict: str) -> None:
    (result,) = await run_cases(
        ScriptedTransport(make_response(id="x")), [write_case(tmp_path, level=level, expect=expect)]
    )
    assert result.verdict == verdict
    assert ("gone" in result.reason) == (verdict != "pass")


STREAM_HEADERS = (("content-type", "text/event-stream"),)


def make_chat(finish: str, text: str = "hi", *, tokens: int | None = None, **message: JsonValue) -> Response:
    choice = {"index": 0, "message": {"content": text, **message}, "finish_reason": finish}
    usage = {} if tokens is None else {"usage": {"prompt_tokens": 1, "completion_tokens": tokens}}
    return make_response(choices=[choice], **usage)


def make_stream(finish: str, *texts: str) -> Response:
    deltas: list[JsonValue] = [{"delta": {"content": text}, "finish_reason": None} for text in texts]
    bodies = [{"choices": [choice]} for choice in [*deltas, {"delta": {}, "finish_reason": finish}]]
    data = "".join(f"data: {json.dumps(body)}\n\n" for body in bodies)
    return Response(200, STREAM_HEADERS, (Chunk(0.0, data.encode()),))


async def judge(
    tmp_path: Path, response: Response, expect: str, *, body: str = "max_tokens: 8, stream: true"
) -> tuple[str, str]:
    (result,) = await run_cases(ScriptedTransport(response), [write_case(tmp_path, expect=expect, body=body)])
    return result.verdict, result.reason


async def test_broken_should_does_not_hide_a_later_must(tmp_path: Path) -> None:
    """The later step is asked, whatever recommendation the first one breaks."""
    one = write_case(tmp_path, expect="should: [{present: [gone]}], checks: [{present: [id]}]", end=SECOND_STEP)
    transport = ScriptedTransport(make_response(id="x"), make_response())
    (result,) = await run_cases(transport, [one])
    assert (result.verdict, result.reason, len(transport.requests)) == ("fail", "present: id is missing", 2)


async def test_wrong_status_ends_the_case(tmp_path: Path) -> None:
    transport = ScriptedTransport(make_response(500))
    (result,) = await run_cases(transport, [write_case(tmp_path, end=SECOND_STEP)])
    assert (result.verdict, len(transport.requests)) == ("fail", 1)


async def test_uncooperative_model_hides_no_broken_must(tmp_path: Path) -> None:
    """The model calls no tool, and the usage is wrong whatever the model does."""
    uncooperative = "cooperation: [{tool_calls: 1}], checks: [tool_args_json, usage_adds_up]"
    verdict, reason = await judge(tmp_path, make_chat("stop", tokens=1), uncooperative)
    assert (verdict, reason.split(":")[0]) == ("fail", "usage_adds_up")


async def test_uncooperative_model_excuses_what_depends_on_it(tmp_path: Path) -> None:
    expect = "cooperation: [{tool_calls: 1}], checks: [{finish_reason: [tool_calls]}]"
    assert (await judge(tmp_path, make_chat("stop"), expect))[0] == "inconclusive"


@pytest.mark.parametrize(
    ("response", "expect", "verdict"),
    [
        (make_chat("stop", tokens=5), "checks: [{finish_reason: [length]}]", "inconclusive"),
        (make_chat("stop", "All of it.", tokens=8), "checks: [{finish_reason: [length]}]", "inconclusive"),
        (make_chat("stop", "half of", tokens=8), "checks: [{finish_reason: [length]}]", "fail"),
        (make_chat("stop", "half of", tokens=0), "checks: [{finish_reason: [length]}]", "fail"),
        (make_chat("stop", "half of", tokens=0), "checks: [usage_counts]", "fail"),
        (make_chat("length", "half of", tokens=8), "checks: [{tools_called: [ping]}]", "inconclusive"),
        (make_chat("stop", "a text", tokens=3), "checks: [{tools_called: [ping]}]", "fail"),
        (make_chat("stop", "17", tokens=3), "cooperation: [reasons], checks: [usage_counts]", "inconclusive"),
        (make_stream("stop", "one", "two"), "checks: [{finish_reason: [length]}]", "inconclusive"),
        (make_stream("stop", *"abcdefgh"), "checks: [{finish_reason: [length]}]", "fail"),
        (make_chat("length", tokens=8), "checks: [{finish_reason: [tool_calls]}]", "inconclusive"),
        (make_chat("length", tokens=3), "checks: [{finish_reason: [tool_calls]}]", "fail"),
        (make_chat("length", '{"a"'), "checks: [{text_is_json: {}}]", "inconclusive"),
        (make_chat("stop", '{"a"'), "checks: [{text_is_json: {}}]", "fail"),
        (make_chat("stop", "", tokens=1), "checks: [has_text]", "inconclusive"),
        (make_chat("stop", "", tokens=7), "checks: [has_text]", "fail"),
        (make_chat("stop", "caf\ufffd"), 'checks: [{without: ["\ufffd"]}]', "inconclusive"),
        (make_chat("stop", "half"), "checks: [{without: [half]}]", "fail"),
    ],
)
async def test_weak_model_is_told_from_a_wrong_server(
    tmp_path: Path, response: Response, expect: str, verdict: str
) -> None:
    assert (await judge(tmp_path, response, expect))[0] == verdict


async def test_fake_provider_behind_a_proxy_is_no_weak_model(tmp_path: Path) -> None:
    case = write_case(tmp_path, expect="checks: [{finish_reason: [tool_calls]}]", body="max_tokens: 8")
    async with FakeUpstream("openai") as fake:
        (result,) = await run_cases(ScriptedTransport(make_chat("length")), [case], upstream=fake)
    assert result.verdict == "fail"


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        (make_response(502, error={"message": "broke off"}), "pass"),
        (make_stream("stop", "one"), "fail"),
    ],
    ids=["an error as a whole", "a stream without an error event"],
)
async def test_broken_stream_may_be_an_error_as_a_whole(tmp_path: Path, response: Response, verdict: str) -> None:
    """A proxy that reads the whole stream before it answers has no stream to end with an error event."""
    case = write_case(tmp_path, expect="checks: [error_event]", body="stream: true")
    step = replace(case.steps[0], expect=replace(case.steps[0].expect, status=(200, 502)))
    (result,) = await run_cases(ScriptedTransport(response), [replace(case, steps=(step,))])
    assert result.verdict == verdict


async def test_stream_that_runs_into_the_timeout_is_not_judged(tmp_path: Path) -> None:
    cut = replace(make_stream("stop", "one"), broken="no end within 25 s")
    verdict, reason = await judge(tmp_path, cut, "schema: event, checks: [has_text]")
    assert (verdict, reason) == ("error", "the reply has no end within 25 s (--timeout); 2 events had arrived")


async def test_stream_that_ends_but_stays_open_is_judged(tmp_path: Path) -> None:
    body = make_stream("stop", "one").body + b"data: [DONE]\n\n"
    open_ = Response(200, STREAM_HEADERS, (Chunk(0.0, body),), "no end within 25 s")
    verdict, reason = await judge(tmp_path, open_, "checks: [sse.framing]")
    assert (verdict, reason) == ("fail", "sse.framing: no end within 25 s")


async def test_hostile_cases_run_last_with_a_short_timeout(tmp_path: Path) -> None:
    cases = [
        write_case(tmp_path, "wild", more="hostile: true", body="user: wild"),
        write_case(tmp_path, "negative", body="max_tokens: -1"),
        write_case(tmp_path, "tame", body="user: tame"),
        write_case(tmp_path, "first", more="probe: true", body="user: first"),
    ]
    transport = ScriptedTransport(make_response())
    await run_cases(transport, cases, concurrency=3)
    sent = [json.loads(request.body) for request in transport.requests]
    assert [body.get("user") for body in sent] == ["first", "tame", "wild", None]
    assert [request.timeout for request in transport.requests] == [None, None, 20.0, 20.0]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, "Not Found"),
        (405, "Method Not Allowed"),
        (501, "The responses route is not implemented for this provider"),
        (400, "the model m does not serve embeddings (unsupported_protocol)"),
        (400, "The model does not support Embeddings API"),
        (400, "Endpoint 'm' is not an embeddings endpoint."),
    ],
)
async def test_gateway_that_says_so_does_not_serve_the_protocol(tmp_path: Path, status: int, message: str) -> None:
    cases = [write_case(tmp_path, "one", more="probe: true"), write_case(tmp_path, "two")]
    results = await run_cases(ScriptedTransport(make_response(status, error={"message": message})), cases)
    assert [result.verdict for result in results] == ["skip", "skip"]
    assert message in results[1].reason


async def test_probe_that_is_refused_for_another_reason_fails(tmp_path: Path) -> None:
    refused = make_response(400, error={"message": "max_tokens is too small"})
    (result,) = await run_cases(ScriptedTransport(refused), [write_case(tmp_path, more="probe: true")])
    assert result.verdict == "fail"


async def test_one_forbidden_feature_does_not_end_the_run(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name, body=f"user: {name}") for name in ("one", "two", "three")]
    transport = ScriptedTransport(make_response(), make_response(403), make_response())
    assert [result.verdict for result in await run_cases(transport, cases)] == ["pass", "fail", "pass"]


async def test_retry_stays_within_the_budget(tmp_path: Path) -> None:
    transport = ScriptedTransport(make_response())
    case = write_case(tmp_path, expect="cooperation: [{present: [id]}]")
    (result,) = await run_cases(transport, [case], budget=15)
    assert (result.verdict, result.attempts, len(transport.requests)) == ("inconclusive", 1, 1)


async def test_uncooperative_model_is_asked_again(tmp_path: Path) -> None:
    one = write_case(tmp_path, expect="cooperation: [{present: [id]}]")
    transport = ScriptedTransport(make_response(), make_response(id="x"))
    (result,) = await run_cases(transport, [one])
    assert (result.verdict, result.attempts, len(transport.requests)) == ("pass", 2, 2)


async def test_number_of_checks_is_fixed(tmp_path: Path) -> None:
    one = write_case(tmp_path, expect="schema: reply, checks: [has_text, usage_adds_up]")
    (good,) = await run_cases(ScriptedTransport(make_response()), [one])
    (bad,) = await run_cases(ScriptedTransport(make_response(500)), [one])
    (none,) = await run_cases(ScriptedTransport(UnreachableError("no")), [one])
    assert len(good.checks) == len(bad.checks) == len(none.checks) == 4
    assert [check.state for check in bad.checks] == ["broken", *["unreached"] * 3]
    assert (bad.verdict, none.verdict) == ("fail", "error")


async def test_first_401_ends_the_run(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name) for name in ("one", "two", "three")]
    transport = ScriptedTransport(make_response(401))
    results = await run_cases(transport, cases)
    assert [result.verdict for result in results] == ["fail", "skip", "skip"]
    assert "is the key right?" in results[1].reason
    assert len(transport.requests) == 1


async def test_unreachable_endpoint_ends_the_run(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name) for name in ("one", "two", "three")]
    transport = ScriptedTransport(UnreachableError("refused"))
    assert [result.verdict for result in await run_cases(transport, cases)] == ["error", "error", "skip"]


async def test_unserved_protocol_is_skipped(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, "one"), write_case(tmp_path, "two", more="probe: true")]
    transport = ScriptedTransport(make_response(404))
    results = await run_cases(transport, cases)
    assert [result.verdict for result in results] == ["skip", "skip"]
    assert len(transport.requests) == 1


async def test_run_stays_within_the_budget(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name, body=f"user: {name}") for name in ("one", "two", "three")]
    results = await run_cases(ScriptedTransport(make_response()), cases, budget=25)
    assert [result.verdict for result in results] == ["pass", "pass", "skip"]


async def test_concurrent_run_keeps_the_order_of_results(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name) for name in ("one", "two", "three")]
    results = await run_cases(ScriptedTransport(make_response()), cases, concurrency=3)
    assert [result.case.id for result in results] == [one.id for one in cases]


async def test_request_has_the_address_and_key_of_the_target(tmp_path: Path) -> None:
    transport = ScriptedTransport(make_response())
    await run_cases(transport, [write_case(tmp_path)])
    (request,) = transport.requests
    assert (request.method, request.url) == ("POST", "http://x/v1/chat/completions")
    assert request.headers == {"Content-Type": "application/json", "Authorization": "Bearer secret"}
    assert json.loads(request.body) == {"model": "m", "messages": []}
