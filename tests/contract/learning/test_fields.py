"""What the answers of an endpoint say about a field, with whole control of the answers."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dragoman.contract.exchange import Chunk, Request, Response
from dragoman.contract.json_types import JsonObject
from dragoman.contract.learning.entry import derive_settings
from dragoman.contract.learning.findings import Findings
from dragoman.contract.learning.learner import LearnError
from tests.contract.learning.learned import make_learner

TEXT = "one two three four five six seven eight"


def make_reply(text: str = TEXT, tokens: int = 16) -> JsonObject:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "length",
        "logprobs": None,
    }
    usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def make_error(status: int, message: str) -> tuple[int, JsonObject]:
    return status, {"error": {"message": message, "type": "t", "param": None, "code": None}}


class Endpoint:
    """A transport to an endpoint that serves only chat, and answers as a function of the body."""

    def __init__(self, answer: Callable[[JsonObject], tuple[int, JsonObject]]) -> None:
        self.answer = answer
        self.bodies: list[JsonObject] = []

    async def send(self, request: Request) -> Response:
        status, reply = self._answer(request)
        return Response(status, (("content-type", "application/json"),), (Chunk(0.0, json.dumps(reply).encode()),))

    def _answer(self, request: Request) -> tuple[int, JsonObject]:
        if "/chat/completions" not in request.url:
            return make_error(404, "no such address")
        body = json.loads(request.body)
        if "messages" not in body:
            return make_error(400, "messages is required")
        self.bodies.append(body)
        return self.answer(body)

    async def close(self) -> None:
        pass


async def learn(answer: Callable[[JsonObject], tuple[int, JsonObject]]) -> tuple[Findings, Endpoint]:
    endpoint = Endpoint(answer)
    learner = make_learner("http://endpoint/v1", dialect="openai")
    learner.transport = endpoint
    await learner.learn()
    return learner.findings, endpoint


@pytest.mark.parametrize(
    ("text", "value"),
    [("on", "accepted"), ("", "accepted"), (TEXT, "ignored"), ("one", "wrong")],
)
async def test_stop_is_judged_by_the_text_after_the_sequence(text: str, value: str) -> None:
    findings, endpoint = await learn(lambda body: (200, make_reply(text if "stop" in body else TEXT)))
    assert findings.get("fields.chat.stop") == value
    assert {"stop": ["e"]}.items() <= next(body for body in endpoint.bodies if "stop" in body).items()
    assert ("stop" in derive_settings(findings)["lacks"]) == (value != "accepted")


@pytest.mark.parametrize(
    ("obeyed", "name"),
    [(("max_tokens",), "max_tokens"), (("max_completion_tokens",), "max_completion_tokens"), ((), None)],
)
async def test_the_limit_that_is_obeyed_is_used(obeyed: tuple[str, ...], name: str | None) -> None:
    def answer(body: JsonObject) -> tuple[int, JsonObject]:
        return 200, make_reply(tokens=min([16, *(body[one] for one in obeyed if one in body)]))

    findings, _ = await learn(answer)
    assert derive_settings(findings).get("max_tokens_name") == name


async def test_a_model_that_refuses_max_tokens_is_asked_by_the_other_name() -> None:
    def answer(body: JsonObject) -> tuple[int, JsonObject]:
        return make_error(400, "use max_completion_tokens") if "max_tokens" in body else (200, make_reply())

    findings, endpoint = await learn(answer)
    assert derive_settings(findings)["max_tokens_name"] == "max_completion_tokens"
    assert sum("max_tokens" in body for body in endpoint.bodies) == 3  # the first question, and its field twice
    assert findings.get("fields.chat.tools") == "accepted"


async def test_fields_that_stop_the_endpoint_are_found_one_by_one() -> None:
    """The error names nothing, so the fields are halved."""
    bad = {"seed", "user", "logit_bias"}

    def answer(body: JsonObject) -> tuple[int, JsonObject]:
        return make_error(500, "Internal Server Error") if bad & body.keys() else (200, make_reply())

    findings, _ = await learn(answer)
    crashed = {name for name, one in findings.list_below("fields.chat") if one.value == "crashes"}
    assert crashed == bad
    assert bad <= set(derive_settings(findings)["lacks"])


async def test_a_refusal_that_is_not_repeated_is_not_known() -> None:
    refused: list[str] = []

    def answer(body: JsonObject) -> tuple[int, JsonObject]:
        if "seed" in body and "seed" not in refused and len(body) == 4:
            refused.append("seed")
            return make_error(400, "seed is not supported")
        return make_error(400, "seed") if "seed" in body and len(body) > 4 else (200, make_reply())

    findings, _ = await learn(answer)
    assert findings.get("fields.chat.seed") is None
    assert "accepted then" in findings.unknown["fields.chat.seed"]


async def test_a_value_that_is_rejected_leaves_the_field() -> None:
    def answer(body: JsonObject) -> tuple[int, JsonObject]:
        kind = body.get("response_format", {}).get("type")
        return make_error(400, "only json_object") if kind == "json_schema" else (200, make_reply())

    findings, _ = await learn(answer)
    assert findings.get("fields.chat.response_format") == "accepted"
    assert "response_format" not in derive_settings(findings)["lacks"]
    assert [name for name, _ in findings.list_below("values")] == ["chat.response_format.1"]


async def test_a_weak_model_that_writes_nothing_lacks_nothing() -> None:
    findings, _ = await learn(lambda body: (200, make_reply("", 0)))
    assert set(derive_settings(findings)["lacks"]) == {"n"}
    assert {"fields.chat.stop", "fields.chat.logprobs", "fields.chat.max_tokens"} <= findings.unknown.keys()


async def test_reasoning_between_tags_is_a_setting() -> None:
    findings, _ = await learn(lambda body: (200, make_reply("<think>well</think>yes")))
    assert derive_settings(findings)["reasoning_tags"] is True
    findings, _ = await learn(lambda body: (200, make_reply("well</think>yes")))
    assert derive_settings(findings)["reasoning_tags"] == "implied"


async def test_an_endpoint_without_a_list_of_models_needs_a_name() -> None:
    learner = make_learner("http://endpoint/v1", dialect="openai", model="")
    learner.transport = Endpoint(lambda _: (200, make_reply()))
    with pytest.raises(LearnError, match="--model"):
        await learner.learn()
