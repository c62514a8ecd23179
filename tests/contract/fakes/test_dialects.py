"""The properties of each dialect: paths, request checks, and the form of replies and streams."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
import pytest
from yarl import URL

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.fakes.answers import SENTENCE, THOUGHTS
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import VARIANTS, called

from .client import ChatClient


@pytest.mark.parametrize(("dialect", "profile"), VARIANTS)
async def test_whole_and_streamed_texts_are_equal(dialect: str, profile: str, client: ChatClient) -> None:
    async with FakeProvider(dialect, profile=profile) as fake:
        whole, stream = await client.send(fake, stream=False), await client.send(fake, stream=True)
    assert whole.body["choices"][0]["message"]["content"] == stream.text == SENTENCE
    assert "👋🏽" in SENTENCE and whole.headers["Content-Type"] == "application/json"
    assert stream.headers["Content-Type"] == "text/event-stream" and stream.done == 1 and stream.events[-1] == "[DONE]"
    end = "eos_token" if (dialect, profile) == ("mindie", "documented") else "stop"
    assert stream.finishes == [end] == [whole.body["choices"][0]["finish_reason"]]
    plural = (dialect, profile) == ("databricks", "documented")
    assert whole.body["object"] == ("chat.completions" if plural else "chat.completion")
    usage = whole.body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 10


@pytest.mark.parametrize(
    ("dialect", "profile", "requested", "location"),
    [
        ("openai", "actual", True, "own"),
        ("openai", "actual", False, "nowhere"),
        ("databricks", "actual", False, "last"),
        ("databricks", "documented", False, "nowhere"),
        ("azure", "actual", True, "own"),
        ("azure", "documented", False, "nowhere"),
        ("mindie", "actual", True, "last"),
        ("mindie", "documented", True, "nowhere"),
    ],
)
async def test_stream_has_usage_in_its_dialects_chunk(
    dialect: str, profile: str, requested: bool, location: str, client: ChatClient
) -> None:
    options: JsonObject = {"stream_options": {"include_usage": True}} if requested else {}
    async with FakeProvider(dialect, profile=profile) as fake:
        reply = await client.send(fake, stream=True, headers={"extra-parameters": "pass-through"}, **options)
    usages = [chunk.get("usage") for chunk in reply.chunks]
    assert any(usages[:-1]) is False and bool(usages[-1]) == (location != "nowhere")
    assert (reply.chunks[-1]["choices"] == []) == (location == "own")


async def test_stream_has_roles_and_opening_of_its_dialect(client: ChatClient) -> None:
    async def roles(dialect: str, profile: str) -> tuple[int, int, JsonValue]:
        async with FakeProvider(dialect, profile=profile) as fake:
            reply = await client.send(fake, stream=True)
        return sum("role" in delta for delta in reply.deltas), len(reply.deltas), reply.deltas[0]["content"]

    assert await roles("openai", "actual") == (1, 18, "")
    assert await roles("mindie", "actual") == (17, 18, "")
    assert await roles("mindie", "documented") == (16, 17, "The")


async def test_mindie_sends_tool_calls_and_closes_whole_replies(client: ChatClient) -> None:
    async with FakeProvider("mindie") as fake:
        reply = await client.send(fake)
    assert reply.body["choices"][0]["message"]["tool_calls"] == []
    assert reply.headers["Connection"] == "close" and reply.headers["RequestUUID"]


async def test_azure_stream_begins_with_filter_results(client: ChatClient) -> None:
    async with FakeProvider("azure") as fake:
        first = (await client.send(fake, stream=True)).chunks[0]
    assert (first["choices"], first["id"], first["created"]) == ([], "", 0) and first["prompt_filter_results"]


@pytest.mark.parametrize("dialect", called("chat"))
async def test_streamed_choices_alternate(dialect: str, client: ChatClient) -> None:
    async with FakeProvider(dialect, validate=False) as fake:
        headers = {"extra-parameters": "pass-through"}
        whole = await client.send(fake, headers=headers, n=2)
        stream = await client.send(fake, headers=headers, n=2, stream=True)
    assert [choice["index"] for choice in whole.body["choices"]] == [0, 1]
    indexes = [choice["index"] for chunk in stream.chunks for choice in chunk["choices"]]
    assert indexes[:6] == [0, 1, 0, 1, 0, 1] and stream.text == "".join(2 * word for word in _words(SENTENCE))


def _words(text: str) -> list[str]:
    first, *others = text.split(" ")
    return [first, *(f" {word}" for word in others)]


@pytest.mark.parametrize("dialect", called("chat"))
async def test_reasoning_has_the_dialects_form(dialect: str, client: ChatClient) -> None:
    async with FakeProvider(dialect, behaviour="reasoning") as fake:
        whole, stream = await client.send(fake), await client.send(fake, stream=True)
    message, usage = whole.body["choices"][0]["message"], whole.body["usage"]
    if dialect == "databricks":
        thought, text = message["content"]
        assert thought["summary"][0]["text"] == THOUGHTS and thought["summary"][0]["signature"]
        assert text == {"type": "text", "text": SENTENCE} and usage["reasoning_tokens"] > 0
        lists = [delta["content"][0] for delta in stream.deltas if isinstance(delta.get("content"), list)]
        assert "".join(part["summary"][0]["text"] for part in lists) == THOUGHTS
        assert lists[-1]["summary"][0]["signature"] and not lists[0]["summary"][0]["signature"]
    else:
        assert message["reasoning_content"] == THOUGHTS and message["content"] == SENTENCE
        assert usage["completion_tokens_details"]["reasoning_tokens"] > 0
        assert "".join(delta.get("reasoning_content", "") for delta in stream.deltas) == THOUGHTS
    assert stream.text == SENTENCE


@pytest.mark.parametrize(
    ("dialect", "paths"),
    [
        ("openai", ["/v1/chat/completions"]),
        ("databricks", ["/serving-endpoints/a%2Fb/invocations", "/serving-endpoints/chat/completions"]),
        ("azure", ["/chat/completions?api-version=2025-05-01"]),
        ("mindie", ["/v1/chat/completions"]),
    ],
)
async def test_fake_serves_the_dialects_paths(dialect: str, paths: list[str], session: aiohttp.ClientSession) -> None:
    body = {"model": "a/b" if dialect != "mindie" else "ab", "messages": [{"role": "user", "content": "Hello"}]}
    async with FakeProvider(dialect) as fake:
        for path in paths:
            async with session.post(URL(fake.origin + path, encoded=True), json=body) as response:
                assert response.status == 200, await response.text()
                assert (await response.json())["model"] == body["model"]
            async with session.get(fake.origin + path) as response:
                assert response.status == 405 and response.headers["Allow"] == "POST"


WORDS = {
    "openai": b'"code":"unknown_url"',
    "databricks": b'"error_code":"ENDPOINT_NOT_FOUND"',
    "azure": b'"error":"Not Found"',
    "mindie": b"",
}


@pytest.mark.parametrize("dialect", WORDS)
async def test_unknown_path_gets_the_dialects_404(dialect: str, session: aiohttp.ClientSession) -> None:
    async with FakeProvider(dialect) as fake, session.post(f"{fake.origin}/v2/nothing", json={}) as response:
        raw = (await response.read()).replace(b": ", b":")
        assert response.status == 404
        assert WORDS[dialect] in raw
        assert b"model" not in raw
        assert (raw == b"") == (dialect == "mindie")


@pytest.mark.parametrize(("dialect", "path"), [("openai", "/v1/models"), ("mindie", "/v1/models"), ("azure", "/info")])
async def test_information_path_names_the_model(dialect: str, path: str, session: aiohttp.ClientSession) -> None:
    async with FakeProvider(dialect) as fake:
        response = await session.get(f"{fake.origin}{path}", params={"api-version": "2025-05-01"})
        assert response.status == 200 and "fake-model" in await response.text()


@pytest.mark.parametrize("version", [None, "2024-13-01", "latest", "2024-05-01-draft"])
async def test_azure_requires_an_api_version(version: str | None, session: aiohttp.ClientSession) -> None:
    query = {} if version is None else {"api-version": version}
    async with FakeProvider("azure") as fake:
        response = await session.post(f"{fake.base_url}/chat/completions", params=query, json={"messages": []})
        assert response.status == 400 and response.headers["x-ms-error-code"] == "BadRequest"
        assert "api-version" in (await response.json())["error"]["message"]


@pytest.mark.parametrize(
    ("profile", "option", "status", "detail"),
    [
        ("actual", None, 400, "Extra parameters ['n', 'user'] are not allowed"),
        ("actual", "error", 400, "Extra parameters ['n', 'user'] are not allowed"),
        ("actual", "drop", 200, ""),
        ("actual", "pass-through", 200, ""),
        ("actual", "ignore", 400, "Unexpected EXTRA_PARAMETERS option ignore, expected options are ['error', 'drop',"),
        ("documented", "ignore", 200, ""),
        (
            "documented",
            "drop",
            400,
            "Unexpected EXTRA_PARAMETERS option drop, expected options are ['error', 'ig",
        ),
    ],
)
async def test_azure_applies_extra_parameters(
    profile: str, option: str | None, status: int, detail: str, client: ChatClient
) -> None:
    headers = {} if option is None else {"extra-parameters": option}
    async with FakeProvider("azure", profile=profile, validate=False) as fake:
        reply = await client.send(fake, n=2, user="me", headers=headers)
    assert reply.status == status
    if status == 400:
        assert detail in reply.body["detail"]
    else:
        assert len(reply.body["choices"]) == (2 if option == "pass-through" else 1)


async def test_databricks_refuses_unknown_fields(client: ChatClient) -> None:
    async with FakeProvider("databricks") as fake:
        reply = await client.send(fake, stream_options={"include_usage": True})
        assert reply.status == 400
        message = 'Bad request: json: unknown field "stream_options"\n'
        assert reply.body == {"error_code": "BAD_REQUEST", "message": message}
    async with FakeProvider("databricks", validate=False) as fake:
        assert (await client.send(fake, stream_options={"include_usage": True})).status == 200


@pytest.mark.parametrize("dialect", ["openai", "mindie"])
async def test_openai_and_mindie_ignore_unknown_fields(dialect: str, client: ChatClient) -> None:
    async with FakeProvider(dialect) as fake:
        assert (await client.send(fake, something_new=1)).status == 200


@pytest.mark.parametrize(
    ("dialect", "profile", "status", "has_form"),
    [
        ("openai", "actual", 400, lambda body: body["error"]["param"] == "messages[0].role"),
        ("databricks", "actual", 400, lambda body: body["error_code"] == "INVALID_PARAMETER_VALUE"),
        ("databricks", "actual", 400, lambda body: body["message"].startswith("messages[0].role: ")),
        ("azure", "actual", 422, lambda body: body["detail"]["loc"] == ["body", "messages", "0", "role"]),
        ("azure", "actual", 422, lambda body: body["detail"]["input"] == "wizard" and "error" not in body),
        ("azure", "documented", 422, lambda body: body["detail"]["value"] == "wizard" and body["error"]),
        ("mindie", "actual", 422, lambda body: body["error_type"] == "Input Validation Error"),
    ],
)
async def test_invalid_request_gets_the_dialects_error(
    dialect: str, profile: str, status: int, has_form: Callable[[JsonObject], bool], client: ChatClient
) -> None:
    wrong = [{"role": "wizard", "content": "Hello"}]
    async with FakeProvider(dialect, profile=profile) as fake:
        reply = await client.send(fake, messages=wrong)
    assert reply.status == status and has_form(reply.body), reply.body
    async with FakeProvider(dialect, profile=profile, validate=False) as fake:
        assert (await client.send(fake, messages=wrong)).status == 200


@pytest.mark.parametrize(("dialect", "status"), [("openai", 400), ("databricks", 400), ("azure", 400), ("mindie", 422)])
@pytest.mark.parametrize("raw", [b'{"a":', b"", b"[]", b"\xff\xfe"])
async def test_body_must_be_a_json_object(
    dialect: str, status: int, raw: bytes, session: aiohttp.ClientSession
) -> None:
    paths = {"databricks": "/serving-endpoints/m/invocations", "azure": "/chat/completions?api-version=2025-05-01"}
    async with FakeProvider(dialect) as fake:
        response = await session.post(fake.origin + paths.get(dialect, "/v1/chat/completions"), data=raw)
        assert response.status == status and "json" in await response.text()


async def test_databricks_streams_by_default_in_its_documented_profile(client: ChatClient) -> None:
    for profile, kind in {"documented": "text/event-stream", "actual": "application/json"}.items():
        async with FakeProvider("databricks", profile=profile) as fake:
            assert (await client.send(fake)).headers["Content-Type"] == kind


@pytest.mark.parametrize(("option", "status"), [(None, 422), ("drop", 422), ("pass-through", 200)])
async def test_azure_passes_unknown_fields_inside_messages(option: str | None, status: int, client: ChatClient) -> None:
    headers = {} if option is None else {"extra-parameters": option}
    messages = [{"role": "user", "content": [{"type": "text", "text": "hello", "x_role": "user"}]}]
    async with FakeProvider("azure") as fake:
        reply = await client.send(fake, messages=messages, headers=headers)
    assert reply.status == status
