"""The example of an ASGI gateway, served by uvicorn, asked by the openai SDK, with a fake provider behind it."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType

import httpx
import pytest
import uvicorn
from openai import APIError, APIStatusError, AsyncOpenAI

from dragoman.contract.fakes import FakeProvider

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "asgi_gateway.py"


@pytest.fixture
async def gateway(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The gateway's address."""
    async with FakeProvider("openai") as provider:
        monkeypatch.setenv("PROVIDER_URL", provider.base_url)
        example = load_example()
        server = uvicorn.Server(uvicorn.Config(example.app, port=0, log_level="error", lifespan="off"))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve([listener]))
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            server.should_exit = True
            await serving
        await example.PROVIDER.aclose()


@pytest.fixture
async def openai(gateway: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{gateway}/v1", api_key="none", max_retries=0) as client:
        yield client


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("asgi_gateway", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def read_stream(client: AsyncOpenAI, prompt: str) -> str:
    messages = [{"role": "user", "content": prompt}]
    stream = await client.chat.completions.create(model="m", messages=messages, stream=True)  # type: ignore[call-overload]
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def test_it_answers_chat(openai: AsyncOpenAI) -> None:
    reply = await openai.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
    assert reply.choices[0].finish_reason == "stop"
    assert reply.choices[0].message.content == await read_stream(openai, "hello")


async def test_it_answers_responses_over_chat(openai: AsyncOpenAI) -> None:
    response = await openai.responses.create(model="m", input="hello")
    assert response.status == "completed"
    stream = await openai.responses.create(model="m", input="hello", stream=True)
    events = [event async for event in stream]
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == response.output_text


async def test_it_answers_several_prompts(openai: AsyncOpenAI) -> None:
    with pytest.raises(APIStatusError, match="emulate_completions"):
        await openai.completions.create(model="m", prompt=["a", "b"])


async def test_it_speaks_another_dialect(gateway: str) -> None:
    body = {"messages": [{"role": "user", "content": "hello"}]}
    async with httpx.AsyncClient() as client:
        reply = await client.post(f"{gateway}/serving-endpoints/m/invocations", json=body)
    assert (reply.status_code, reply.json()["object"]) == (200, "chat.completion")


@pytest.mark.parametrize("behaviour", ["cut", "error-event", "cut-clean"])
async def test_a_torn_stream_is_an_error(behaviour: str, openai: AsyncOpenAI) -> None:
    with pytest.raises(APIError):
        await read_stream(openai, f"fake:{behaviour}")


async def test_an_azure_client_sees_a_torn_stream_by_its_broken_connection(gateway: str) -> None:
    body = {"messages": [{"role": "user", "content": "fake:cut"}], "stream": True}
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(f"{gateway}/models/chat/completions?api-version=2024-05-01-preview", json=body)


async def test_a_failure_before_the_stream_has_its_status(openai: AsyncOpenAI) -> None:
    with pytest.raises(APIStatusError) as caught:
        await read_stream(openai, "fake:first-error")
    assert caught.value.status_code >= 400


@pytest.mark.parametrize("body", [b"{", b'{"model": "m"}', b'{"model": "m", "messages": "x"}'])
async def test_a_wrong_request_gets_the_dialects_error(body: bytes, gateway: str) -> None:
    async with httpx.AsyncClient() as client:
        reply = await client.post(f"{gateway}/v1/chat/completions", content=body)
        unknown = await client.post(f"{gateway}/v1/chat/completion", content=b"{}")
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_url")
