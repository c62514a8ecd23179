"""Which model `dragoman chat` asks, and what a conversation prints."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from typer.testing import CliRunner

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.cli.chat.client import ChatClient, ChatError, ServerUnreachable
from dragoman.proxy.cli.chat.conversation import choose_model, converse, format_timing
from dragoman.proxy.cli.chat.temporary_proxy import run_temporary_proxy
from dragoman.proxy.cli.main import app
from dragoman.proxy.config.models import Config

ANY: JsonObject = {"targets": [{"provider": "p"}]}


def run_proxy(base_url: str, models: JsonObject, default: str | None = None) -> Iterator[ChatClient]:
    config = {
        "server": {"default_model": default},
        "providers": {"p": {"dialect": "openai", "base_url": base_url}},
        "models": models,
    }
    with run_temporary_proxy(Config.from_values(config)) as url:
        yield ChatClient(f"{url}/v1")


@pytest.mark.parametrize(
    ("models", "default", "chosen"),
    [
        ({"only": ANY}, None, "only"),
        ({"a": ANY, "b": ANY}, "b", "b"),
        ({"a": ANY, "b": ANY}, None, "a"),
        ({"fake*": ANY}, None, "fake-model"),
    ],
)
async def test_the_only_or_the_default_model_is_asked(models: JsonObject, default: str | None, chosen: str) -> None:
    async with FakeProvider("openai") as fake:

        def choose() -> str:
            for client in run_proxy(fake.base_url, models, default):
                return choose_model(client)
            raise AssertionError

        assert await asyncio.to_thread(choose) == chosen


def test_a_proxy_that_runs_has_the_admin_port() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        config = Config.from_values({"server": {"admin_port": port}, "providers": {}, "models": {}})
        with run_temporary_proxy(config) as url:
            assert url.startswith("http://127.0.0.1:")


async def test_a_server_without_models_is_a_refusal() -> None:
    async with FakeProvider("openai") as fake:

        def choose() -> str:
            for client in run_proxy(fake.base_url, {"none*": ANY}):
                return choose_model(client)
            raise AssertionError

        with pytest.raises(ChatError, match="lists no model") as caught:
            await asyncio.to_thread(choose)
        assert caught.value.exit_status == 1


def test_faults_of_providers_and_of_the_network_have_the_status_of_call() -> None:
    assert [ChatError("", status).exit_status for status in (400, 404, 429, 500, 502, None)] == [1, 1, 1, 3, 3, 3]
    assert ServerUnreachable("").exit_status == 3


def test_the_model_can_be_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], type_lines: Callable[[str], None]
) -> None:
    asked: list[str] = []

    class Client(ChatClient):
        def fetch_models(self) -> list[str]:
            return ["a", "b"]

        def stream_answer(self, model: str, messages: object) -> Iterator[str]:
            asked.append(model)
            yield "fine"

    type_lines("Hi\n/model\n/model b\nHi\n/model nobody\n/model\n/quit\n")
    converse(Client("http://127.0.0.1:9/v1"), "a")
    output = capsys.readouterr()
    assert (asked, output.out) == (["a", "b"], "fine\nfine\n")
    assert output.err == "* a\n  b\n  a\n  b\n"


@pytest.fixture
def type_lines(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    import io

    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_timings_say_when_the_text_began() -> None:
    assert format_timing([1.0, 1.25, 1.5], 2.0) == "  (1.00 s, first text after 0.25 s)"
    assert format_timing([1.0], 1.5) == "  (0.50 s, no text)"


async def test_an_address_without_v1_is_explained() -> None:
    async with FakeProvider("openai") as fake:
        arguments = ["chat", "Hi", "--base-url", fake.origin]
        result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert result.exit_code == 1
    assert f"it usually ends with /v1: --base-url {fake.origin}/v1" in result.stderr
