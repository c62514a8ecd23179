"""Replies and events with countless values end as the provider's fault, before they are parsed."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Target
from dragoman.adapters.dialect import COMPANIONS
from dragoman.adapters.dialect_check import SIDES
from dragoman.adapters.json_structure import REPLY_COMMAS, REPLY_VALUES, exceeds_values
from dragoman.adapters.pipeline import Pipeline, plan_target
from dragoman.adapters.pipeline.attempt import Attempt
from dragoman.adapters.routes import RouteTable
from tests.adapters.step_count import count_steps

ROUTES = RouteTable(dialects, {})
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "completions": "/v1/completions",
    "embeddings": "/v1/embeddings",
    "messages": "/v1/messages",
    "count_tokens": "/v1/messages/count_tokens",
}
COUNTLESS = b"[]," * REPLY_VALUES + b"[]"
CASES = [(dialect, protocol) for dialect, one in dialects.items() for protocol in one.called]


def expect(dialect: str, protocol: str, *, stream: bool) -> Attempt:
    path = PATHS[protocol]
    route = ROUTES.match(path)
    assert route is not None
    plan = plan_target("p", dialects[dialect], [COMPANIONS.get(protocol, protocol)], Target("m"))
    request = {"model": "m", "messages": [], "max_tokens": 1, "input": "x", "prompt": "x", "stream": stream}
    attempt = Pipeline(route, Call("POST", path, {})).expect_reply(plan, request)
    attempt.start_reply(0, 200, {"content-type": "text/event-stream" if stream else "application/json"})
    return attempt


def assert_too_large(attempt: Attempt) -> None:
    fault = attempt.outcome.fault
    assert fault is not None
    assert (fault.code, fault.owner) == ("upstream_response_too_large", "provider")


@pytest.mark.parametrize(("dialect", "protocol"), CASES)
def test_a_reply_of_countless_values(dialect: str, protocol: str) -> None:
    attempt = expect(dialect, protocol, stream=False)
    raw = b'{"choices":[' + COUNTLESS + b'],"data":[],"output":[]}'

    def receive() -> None:
        attempt.feed(0, raw)
        attempt.close(0)

    assert count_steps(receive) < 3_000
    assert_too_large(attempt)


@pytest.mark.parametrize("ends", ["\n\n", ""])
@pytest.mark.parametrize(("dialect", "protocol"), [case for case in CASES if "event" in SIDES[case[1]]])
def test_an_event_of_countless_values(dialect: str, protocol: str, ends: str) -> None:
    attempt = expect(dialect, protocol, stream=True)
    attempt.feed(0, b'data: {"choices":[' + COUNTLESS[: len(COUNTLESS) // 2] + b"[]]}" + ends.encode())
    attempt.close(0)
    assert_too_large(attempt)


def test_large_vectors_and_log_probabilities_are_no_countless_values() -> None:
    vectors = b'{"data":[' + b",".join([b'{"embedding":[' + b"0.5," * 3_071 + b"0.5]}"] * 512) + b"]}"
    assert not exceeds_values(vectors, REPLY_VALUES // 4, REPLY_COMMAS)
    entry = b'{"token":"a","logprob":-0.5,"bytes":[97]}'
    tokens = b'{"content":[' + b",".join([b'{"top_logprobs":[' + b",".join([entry] * 20) + b"]}"] * 1_000) + b"]}"
    assert not exceeds_values(tokens, REPLY_VALUES // 8, REPLY_COMMAS)
