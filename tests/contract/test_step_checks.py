"""One cause, one case: nulls and the types of error codes fail the cases that are about them, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.contract.exchange import Chunk, Response
from dragoman.contract.json_types import JsonObject
from dragoman.contract.profiles import count_failures_by_profile, suggest_profile

from .scripted import TARGET, ScriptedTransport, make_response, run_cases, write_case

MESSAGE: JsonObject = {"role": "assistant", "content": "hi", "refusal": None}
CHOICE: JsonObject = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": MESSAGE}
USAGE: JsonObject = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
REPLY: JsonObject = {"id": "c", "object": "chat.completion", "created": 1750000000, "model": "m"}


def make_chat(*, message: JsonObject | None = None, **more: object) -> Response:
    return make_response(**REPLY, choices=[{**CHOICE, "message": MESSAGE | (message or {})}], usage=USAGE, **more)


def make_error(status: int = 400, **error: object) -> Response:
    return make_response(status, error={"message": "no", "type": "bad", "param": None, "code": None, **error})


async def judge(folder: Path, response: Response, expect: str, status: int = 200, **more: str) -> tuple[str, str]:
    case = write_case(folder, expect=expect, status=status, **{"body": "stream: true", **more})
    (result,) = await run_cases(ScriptedTransport(response), [case])
    return result.verdict, result.reason


NULL_KEYS = [
    make_chat(message={"tool_calls": None}),
    make_chat(message={"audio": None, "function_call": None}),
    make_response(**REPLY, choices=[{"index": 0, "finish_reason": "stop", "message": MESSAGE}], usage=USAGE),
]


@pytest.mark.parametrize("response", NULL_KEYS, ids=["null list", "null objects", "missing logprobs"])
async def test_nulls_fail_only_their_own_case(tmp_path: Path, response: Response) -> None:
    assert await judge(tmp_path, response, "schema: reply") == ("pass", "")
    verdict, reason = await judge(tmp_path, response, "checks: [{complete: reply}]")
    assert (verdict, reason.split(":")[0]) == ("fail", "complete")


@pytest.mark.parametrize(
    "response",
    [
        make_response(**REPLY, choices=None, usage=USAGE),
        make_response(**REPLY, choices=[{**CHOICE, "message": None}], usage=USAGE),
        make_chat(message={"tool_calls": [None]}),
        make_chat(message={"content": 7}),
    ],
    ids=["no choices", "no message", "null in a list", "wrong type"],
)
async def test_null_that_readers_stumble_over_breaks_the_schema(tmp_path: Path, response: Response) -> None:
    assert (await judge(tmp_path, response, "schema: reply"))[0] == "fail"


@pytest.mark.parametrize("error", [{"code": 400}, {"type": None}, {"param": 7}])
async def test_type_of_an_error_code_fails_only_its_own_case(tmp_path: Path, error: JsonObject) -> None:
    assert await judge(tmp_path, make_error(**error), "checks: [error_shape]", 400) == ("pass", "")
    verdict, reason = await judge(tmp_path, make_error(**error), "schema: error, checks: [{complete: error}]", 400)
    assert (verdict, reason.split(":")[0] in ("schema error", "complete")) == ("fail", True)


async def test_foreign_form_of_errors_fails_only_its_own_case(tmp_path: Path) -> None:
    foreign = make_response(400, detail="no")
    assert (await judge(tmp_path, foreign, "checks: [error_shape]", 400))[0] == "warn"
    assert (await judge(tmp_path, foreign, "schema: error", 400))[0] == "fail"


def make_sse(*bodies: JsonObject) -> Response:
    data = "".join(f"data: {json.dumps(body)}\n\n" for body in bodies)
    return Response(200, (("content-type", "text/event-stream; charset=utf-8"),), (Chunk(0.0, data.encode()),))


@pytest.mark.parametrize(
    ("response", "side", "problem"),
    [
        (make_sse({"a": 1}, {"a": 2}), "reply", "the reply is an event stream of 2 events, expected one JSON body"),
        (make_chat(), "event", "the reply is one JSON body, expected an event stream"),
        (Response(200, ()), "reply", "the body is empty (content-type: none)"),
        (
            Response(200, (("content-type", "text/html"),), (Chunk(0.0, b"<p>"),)),
            "reply",
            "the body is not JSON: '<p>' (content-type: text/html)",
        ),
    ],
)
async def test_reply_of_another_kind_is_named(tmp_path: Path, response: Response, side: str, problem: str) -> None:
    assert await judge(tmp_path, response, f"schema: {side}") == ("fail", f"schema {side}: {problem}")


UNASKED = "status: the reply is an event stream that the request did not ask for"


async def test_stream_that_no_request_asks_for_fails_only_the_probe(tmp_path: Path) -> None:
    """transformers serve streams by default: one cause, one case."""
    stream = make_sse({"a": 1}, {"a": 2})
    for body in ("max_tokens: 8", "input: hello"):
        verdict, reason = await judge(tmp_path, stream, "checks: [{type: {id: string}}]", body=body)
        assert (verdict, reason.partition(",")[0]) == ("inconclusive", UNASKED)
    assert (await judge(tmp_path, stream, "schema: reply", body="max_tokens: 8", more="probe: true"))[0] == "fail"


@pytest.mark.parametrize(
    ("needs", "message", "lacking"),
    [
        ("vision", "mini is not a multimodal model", "vision"),
        ("vision", "Model 'm' does not support image inputs.", "vision"),
        ("dimensions", "Model 'mini' does not support Matryoshka embeddings; dimensions must be unset", "dimensions"),
        ("dimensions", "mini is not a multimodal model", ""),
        ("vision", "dimensions must be positive", ""),
        ("tools", "mini is not a multimodal model", ""),
    ],
)
async def test_error_says_that_the_model_lacks_a_capability(
    tmp_path: Path, needs: str, message: str, lacking: str
) -> None:
    verdict, reason = await judge(tmp_path, make_error(message=message), "checks: []", more=f"needs: [{needs}]")
    assert verdict == ("inconclusive" if lacking else "fail")
    assert reason.startswith(f"status: the model lacks {lacking} (--without {lacking})") is bool(lacking)


async def test_path_in_an_error_of_fastapi_names_the_field(tmp_path: Path) -> None:
    loc = ["body", "messages", 0, "content"]
    error = make_response(422, detail=[{"type": "missing", "loc": loc, "msg": "Field required", "input": {"role": 1}}])
    for field, verdict in (("messages", "pass"), ("messages[0].content", "pass"), ("role", "warn"), ("input", "warn")):
        found = await judge(tmp_path, error, f'checks: [{{error_names: "{field}"}}]', status=422)
        assert found[0] == verdict


async def test_better_profile_is_suggested(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name, expect="schema: error", status=400) for name in ("one", "two")]
    results = await run_cases(ScriptedTransport(make_error(code=400)), cases)
    failures = count_failures_by_profile(results, TARGET)
    assert failures == {"documented": 2, "actual": 0}
    wanted = "the endpoint fits the profile actual better: 0 failures instead of 2 (--profile actual)"
    assert suggest_profile(failures, "documented") == wanted
    assert suggest_profile(failures, "actual") == ""
    assert suggest_profile({"documented": 1, "actual": 1}, "documented") == ""


async def test_error_with_a_status_of_success_is_called_that(tmp_path: Path) -> None:
    verdict, reason = await judge(tmp_path, make_error(200), "schema: reply")
    assert (verdict, reason.startswith("schema reply: the body is an error, and the status is 200: ")) == ("fail", True)
    verdict, reason = await judge(tmp_path, make_error(200), "schema: event")
    assert (verdict, reason.startswith("schema event: the body is an error, and the status is 200: ")) == ("fail", True)


async def test_stream_without_blank_lines_is_called_that(tmp_path: Path) -> None:
    lines = b'data: {"id": "c"}\ndata: {"id": "c"}\ndata: [DONE]\n\n'
    response = Response(200, (("content-type", "text/event-stream"),), (Chunk(0.0, lines),))
    verdict, reason = await judge(tmp_path, response, "schema: event")
    assert (verdict, reason.startswith("schema event: no blank line ends an event")) == ("fail", True)


async def test_redirect_is_shown_with_its_address(tmp_path: Path) -> None:
    response = Response(308, (("location", "https://h/v1/chat/completions"),))
    verdict, reason = await judge(tmp_path, response, "schema: reply")
    words = "status: 308, expected 200 (a redirect to 'https://h/v1/chat/completions', which is not followed): "
    assert (verdict, reason.startswith(words)) == ("fail", True), reason
