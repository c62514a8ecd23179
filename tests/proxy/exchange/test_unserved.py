"""A protocol that only the dialect's default assumes, and that a provider does not serve."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.routing.unserved import UnservedProtocols
from tests.proxy.first_target import FirstTarget
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import REPLY, StartUpstream, Step, Upstream, http

EMBEDDED = {
    "object": "list",
    "model": "m",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "usage": {"prompt_tokens": 1, "total_tokens": 1},
}
COMPLETED = {
    "id": "x",
    "object": "text_completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "text": "hello", "finish_reason": "stop", "logprobs": None}],
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "hello", "annotations": []}],
        }
    ],
}
NO_EMBEDDINGS = {"object": "error", "message": "The model does not support Embeddings API", "code": 400}
PROMPT: JsonObject = {"model": "m", "prompt": "x"}
INPUT: JsonObject = {"model": "m", "input": "x"}


class _ByPath:
    """A script with an answer for each path, and 404 for all others."""

    def __init__(self, upstream: Upstream, answers: dict[str, tuple[str, JsonObject]]) -> None:
        self._upstream, self._answers = upstream, answers

    def __iter__(self) -> Iterator[Step]:
        path = self._upstream.requests[-1].split(b" ")[1].decode()
        status, body = self._answers.get(path, ("404 Not Found", {"detail": "Not Found"}))
        return iter([http(json.dumps(body).encode(), status=status), "keep"])


async def _serve(upstream: StartUpstream, **answers: JsonObject) -> Upstream:
    """An upstream with these replies, by the last part of the path."""
    made = await upstream()
    paths = {"chat": "/v1/chat/completions", "completions": "/v1/completions", "embeddings": "/v1/embeddings"}
    made.script = _ByPath(made, {paths[name]: ("200 OK", body) for name, body in answers.items()})
    return made


def _paths(upstream: Upstream) -> list[str]:
    return [request.split(b" ")[1].decode() for request in upstream.requests]


async def _post(proxy: Proxy, path: str, body: JsonObject) -> tuple[int, Any]:
    async with proxy.session.post(proxy.running.url + path, json=body) as response:
        return response.status, await response.json()


def _warnings(proxy: Proxy) -> list[JsonObject]:
    return [line for line in proxy.lines if line["event"] == "protocol_not_served"]


async def test_embeddings_and_completions_need_no_configuration(proxy: StartProxy, upstream: StartUpstream) -> None:
    p = await proxy(await _serve(upstream, completions=COMPLETED, embeddings=EMBEDDED), speak=dialects)
    assert (await _post(p, "/v1/embeddings", INPUT))[0] == 200
    assert (await _post(p, "/v1/completions", PROMPT))[1]["choices"][0]["text"] == "hello"
    assert not _warnings(p)


async def test_the_next_target_is_tried_and_later_tried_first(proxy: StartProxy, upstream: StartUpstream) -> None:
    first, second = await upstream(), await _serve(upstream, embeddings=EMBEDDED)
    first.script = _ByPath(first, {"/v1/embeddings": ("400 Bad Request", NO_EMBEDDINGS)})
    p = await proxy(first, second, speak=dialects, random=FirstTarget())
    for _ in range(3):
        assert (await _post(p, "/v1/embeddings", INPUT))[0] == 200
    assert (len(first.requests), len(second.requests)) == (1, 3)
    (warning,) = _warnings(p)
    assert (warning["target"], warning["protocol"]) == ("p0/up", "embeddings")
    assert warning["hint"] == "check base_url of the provider p0, or set its protocols"


async def test_a_target_without_an_alternative_is_asked_every_time(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await _serve(upstream, chat=REPLY)
    p = await proxy(up, speak=dialects)
    for _ in range(2):
        status, body = await _post(p, "/v1/embeddings", INPUT)
        assert (status, body["error"]["message"]) == (404, "Not Found")
    assert _paths(up) == ["/v1/embeddings"] * 2
    assert len(_warnings(p)) == 1
    assert (await p.ask()).status == 200


async def test_the_bridge_says_which_policy_serves_completions(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await _serve(upstream, chat=REPLY)
    p = await proxy(up, speak=dialects)
    for _ in range(2):
        status, body = await _post(p, "/v1/completions", PROMPT)
        assert (status, body["error"]["code"]) == (400, "unsupported_protocol")
        assert "emulate_completions" in body["error"]["message"]
    assert _paths(up) == ["/v1/completions"]


async def test_a_policy_prefers_the_bridge_to_an_assumed_protocol(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await _serve(upstream, chat=REPLY, completions=COMPLETED)
    p = await proxy(up, speak=dialects, policy={"emulate_completions": True})
    assert (await _post(p, "/v1/completions", PROMPT))[1]["choices"][0]["text"] == "hello"
    assert _paths(up) == ["/v1/chat/completions"]


async def test_chat_goes_over_a_bridge_once_it_turns_out_not_to_be_served(
    proxy: StartProxy, upstream: StartUpstream
) -> None:
    up = await upstream()
    up.script = _ByPath(up, {"/serving-endpoints/responses": ("200 OK", RESPONSE)})
    provider = {"dialect": "databricks", "base_url": f"http://127.0.0.1:{up.port}", "api_key": "k"}
    targets = [{"provider": "p0", "model": "databricks-gpt-5"}]
    p = await proxy(provider, speak=dialects, models={"m": {"targets": targets}})
    for _ in range(2):
        answer = await p.ask()
        assert answer.json["choices"][0]["message"]["content"] == "hello"
    chat, responses = "/serving-endpoints/databricks-gpt-5/invocations", "/serving-endpoints/responses"
    assert _paths(up) == [chat, responses, responses]
    assert [line["attempts"] for line in await p.exchanges(2)] == [2, 1]


async def test_what_the_configuration_names_is_not_doubted(proxy: StartProxy, upstream: StartUpstream) -> None:
    first, second = await upstream(), await _serve(upstream, embeddings=EMBEDDED)
    first.script = _ByPath(first, {})
    named = {"base_url": f"http://127.0.0.1:{first.port}/v1", "protocols": ["chat", "embeddings"]}
    p = await proxy(named, second, speak=dialects, random=FirstTarget())
    assert (await _post(p, "/v1/embeddings", INPUT))[0] == 404
    assert not second.requests
    assert not _warnings(p)


async def test_a_model_that_is_not_found_says_nothing_about_the_protocol(
    proxy: StartProxy, upstream: StartUpstream
) -> None:
    up = await upstream()
    unknown = {"error": {"message": "The model `up` does not exist", "code": "model_not_found"}}
    up.script = _ByPath(up, {"/v1/chat/completions": ("404 Not Found", unknown)})
    p = await proxy(up, speak=dialects)
    assert (await p.ask()).error["code"] == "model_not_found"
    assert not _warnings(p)


# What is assumed


def _list_called(dialect: str, model: str = "some-model", **provider: Any) -> list[str]:
    given = {"dialect": dialect, "base_url": "http://127.0.0.1", **provider}
    target = {"provider": "p", "model": model}
    config = Config.from_values({"providers": {"p": given}, "models": {"m": {"targets": [target]}}})
    state = RouterState(config, dialects)
    return sorted(next(state.list_candidates("m", ANYONE)).plan.called)


@pytest.mark.parametrize(
    ("dialect", "protocols"),
    [
        ("openai", ["chat", "completions", "embeddings"]),
        ("databricks", ["chat", "completions", "embeddings"]),
        ("azure", ["chat", "embeddings"]),
        ("mindie", ["chat"]),
    ],
)
async def test_every_dialect_has_its_own_default(dialect: str, protocols: list[str]) -> None:
    assert _list_called(dialect) == protocols


async def test_a_form_of_address_has_only_its_own_protocols() -> None:
    assert _list_called("databricks", address="ai-gateway") == ["chat", "embeddings"]


async def test_what_is_documented_of_a_model_precedes_the_default() -> None:
    assert _list_called("databricks", "databricks-gpt-5") == ["chat", "responses"]
    assert _list_called("databricks", "databricks-gpt-5", protocols=["chat"]) == ["chat"]
    assert _list_called("openai", "BAAI/bge-large-en-v1.5") == ["embeddings"]


async def test_a_pattern_has_the_protocols_of_the_model_that_is_asked_for() -> None:
    provider = {"dialect": "databricks", "base_url": "http://127.0.0.1"}
    models = {"databricks-*": {"targets": [{"provider": "p"}]}}
    state = RouterState(Config.from_values({"providers": {"p": provider}, "models": models}), dialects)
    called = [
        sorted(next(state.list_candidates(name, ANYONE)).plan.called)
        for name in ("databricks-gpt-5", "databricks-gte-large-en", "databricks-other")
    ]
    assert called == [["chat", "responses"], ["embeddings"], ["chat", "completions", "embeddings"]]


def test_what_was_found_out_is_forgotten_after_a_while() -> None:
    now = 0.0
    found = UnservedProtocols(lambda: now)
    assert found.record("m", "embeddings")
    assert not found.record("m", "embeddings")
    assert (found.list_for("m"), found.list_for("other")) == ({"embeddings"}, frozenset())
    now = 601.0
    assert found.list_for("m") == frozenset()
    assert not found
