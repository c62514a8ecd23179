"""No client steers litellm, and it does nothing besides the call."""

from __future__ import annotations

import json
import subprocess
import sys

import aiohttp
import pytest

from dragoman.contract.json_types import JsonObject, JsonValue

from .conftest import KEY, Messages, Proxy, StartProxy, message

WHOLE = message({"type": "text", "text": "hello"})
WORDS: JsonObject = {
    "api_base": "http://127.0.0.1:9",
    "base_url": "http://127.0.0.1:9",
    "api_key": "stolen",
    "custom_llm_provider": "openai",
    "extra_headers": {"x-evil": "1"},
    "headers": {"x-evil": "1"},
    "mock_response": "made up",
    "mock_delay": 5,
    "fallbacks": ["openai/gpt-5"],
    "num_retries": 5,
    "model_list": [],
    "litellm_metadata": {},
    "metadata": {"user_api_key": "x"},
    "logger_fn": "print",
    "input_cost_per_token": 1,
    "aws_secret_access_key": "x",
    "vertex_credentials": "/etc/passwd",
    "ssl_verify": False,
    "client": {},
    "timeout": 0.001,
    "acompletion": False,
    "_skip_mcp_handler": False,
    "extra_body": {"x-evil": 1},
    "allowed_openai_params": ["x"],
}


async def ask(proxy: Proxy, **body: JsonValue) -> tuple[int, JsonObject]:
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
    async with aiohttp.ClientSession() as session, session.post(f"{proxy.url}/chat/completions", json=asked) as reply:
        return reply.status, await reply.json()


@pytest.mark.parametrize("policy", ["pass-through", "drop"])
async def test_no_word_of_a_client_gets_through(proxy: StartProxy, fake: Messages, policy: str) -> None:
    fake.says(WHOLE)
    made = await proxy(policy={"extra_parameters": policy})
    for word, value in WORDS.items():
        fake.requests.clear()
        status, body = await ask(made, **{word: value})
        if status == 400:
            assert body["error"]["param"] == word and not fake.requests
            continue
        assert (status, body["choices"][0]["message"]["content"]) == (200, "hello"), word
        [(path, headers, sent)] = fake.requests
        assert path == "/v1/messages" and headers["x-api-key"] == KEY and "x-evil" not in headers
        assert sent.keys() == {"model", "messages", "max_tokens"}, word


async def test_a_model_of_a_client_never_names_a_vendor(proxy: StartProxy, fake: Messages) -> None:
    fake.says(WHOLE)
    made = await proxy(models={"*": {"targets": [{"provider": "any"}]}})
    for model in ("openai/gpt-5", "ollama/x", "azure/x", "bedrock/x"):
        status, _ = await ask(made, model=model)
        assert status == 200
        assert fake.requests[-1][2]["model"] == model


SWITCHED_OFF = """
import json
from dragoman.proxy.upstreams.litellm.process.library import load_litellm

litellm = load_litellm()
names = ("callbacks success_callback failure_callback telemetry num_retries model_fallbacks drop_params cache").split()
print(json.dumps([name for name in names if getattr(litellm, name)]))
"""


def test_everything_of_its_own_is_off() -> None:
    run = subprocess.run([sys.executable, "-c", SWITCHED_OFF], capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(run.stdout) == []


async def test_secrets_stay_out_of_the_log(proxy: StartProxy, fake: Messages) -> None:
    fake.says(KEY.encode(), status=500)
    made = await proxy()
    _, body = await ask(made)
    assert KEY not in str(body) and KEY not in made.log.getvalue().decode()


@pytest.mark.parametrize(
    "address", ["http://169.254.169.254/latest", "https://host/a.png", "gs://bucket/x", "FILE:///etc/passwd"]
)
async def test_addresses_in_messages_are_not_fetched(proxy: StartProxy, fake: Messages, address: str) -> None:
    part = {"type": "image_url", "image_url": {"url": address}}
    status, body = await ask(await proxy(), messages=[{"role": "user", "content": [part]}])
    assert (status, body["error"]["param"]) == (400, "messages[0].content[0].image_url.url")
    assert not fake.requests


async def test_data_in_messages_goes_on(proxy: StartProxy, fake: Messages) -> None:
    fake.says(WHOLE)
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    text = {"type": "text", "text": "https://host is an address"}
    status, _ = await ask(await proxy(), messages=[{"role": "user", "content": [text, part]}])
    assert status == 200
    assert [part["type"] for part in fake.requests[0][2]["messages"][0]["content"]] == ["text", "image"]
