"""A request that is really sent, through a proxy in this process, to a fake provider."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from typer.testing import Result

from dragoman.contract.fakes import FakeProvider
from tests.dialects import DIALECTS

Run = Callable[..., Result]


@contextmanager
def running(fake: FakeProvider) -> Iterator[FakeProvider]:
    """The fake in an event loop of its own, in a thread: the command has its own loop in this one."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(fake.__aenter__(), loop).result(20)
        yield fake
        asyncio.run_coroutine_threadsafe(fake.__aexit__(None, None, None), loop).result(20)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


@pytest.fixture
def fake(elsewhere: Path) -> Iterator[FakeProvider]:
    with running(FakeProvider("databricks", api_key="up-canary")) as provider:
        (elsewhere / "dragoman.yaml").write_text(
            f"""\
server: {{port: 1, host: 127.0.0.1}}
keys: [{{name: ci, key: "${{KEY:-key-canary}}"}}, {{name: other, key: "${{KEY:-o-canary}}", models: [fallback]}}]
providers:
  p: {{dialect: databricks, base_url: "{provider.base_url}", api_key: "${{KEY:-up-canary}}"}}
  nowhere: {{dialect: openai, base_url: "http://127.0.0.1:1/v1"}}
models:
  m: {{targets: [{{provider: p, model: up}}], policy: {{unsupported: drop}}}}
  dead: {{targets: [{{provider: nowhere}}]}}
  fallback: {{targets: [{{provider: nowhere}}], fallbacks: [m]}}
"""
        )
        yield provider


def test_reply(run: Run, fake: FakeProvider) -> None:
    body = {"model": "x", "messages": [{"role": "user", "content": "hi"}], "seed": 1}
    result = run("call", "--model", "m", stdin=json.dumps(body))
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["object"] == "chat.completion"
    assert "canary" not in result.output
    [received] = fake.requests
    assert received.body == {"messages": body["messages"], "stream": False}
    told = result.stderr
    for words in (
        'openai/chat request\n{\n  "model": "m",\n',
        "model m, found by its name\n",
        f"POST {fake.base_url}/serving-endpoints/up/invocations\n",
        "Authorization: Bearer ***\n",
        "loss  dropped    seed: the target's API does not have it\n",
        "\nstatus 200\n",
        'x-dragoman-changes: dropped;path="seed"',
        "\ntarget p/up, attempts: 1\ntook ",
    ):
        assert words in told
    assert told.index("POST ") < told.index("status 200") < told.index("took ")


def test_a_proxy_that_runs_has_the_admin_port(run: Run, fake: FakeProvider, elsewhere: Path) -> None:
    config = elsewhere / "dragoman.yaml"
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        config.write_text(config.read_text().replace("server: {", f"server: {{admin_port: {port}, "))
        result = run("call", "--model", "m", "--message", "hi")
    assert result.exit_code == 0, result.stderr


def test_stream(run: Run, fake: FakeProvider) -> None:
    result = run("call", "--model", "m", "--message", "hi", "--stream")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("data: {")
    assert result.stdout.endswith("data: [DONE]\n\n")
    assert fake.requests[0].body["stream"] is True
    assert "first event after" in result.stderr


def test_the_receipt_of_the_answer(run: Run, fake: FakeProvider) -> None:
    result = run("call", "--model", "m", "--message", "fake:list-content")
    assert result.exit_code == 0, result.stderr
    changes = result.stderr.partition("changes to the answer\n")[2].partition("\ntarget ")[0]
    assert changes.startswith("form  ") or changes == "nothing changed"
    assert "model: the address names the endpoint" not in changes  # a change to the request


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_the_raw_answer_on_request(run: Run, fake: FakeProvider, stream: tuple[str, ...]) -> None:
    plain, raw = (run("call", "--model", "m", "--message", "hi", *stream, *more) for more in ((), ("--raw",)))
    assert "p/up answered" not in plain.stderr
    assert raw.exit_code == 0, raw.stderr
    shown = raw.stderr.partition("\np/up answered\nHTTP/1.1 200")[2].partition("changes to the answer")[0]
    assert "Content-Type: " in shown or "content-type: " in shown
    assert ("data: {" if stream else '"choices"') in shown
    assert "canary" not in raw.output
    assert raw.stdout.startswith("data: {" if stream else "{")


def test_the_raw_answer_of_every_try(run: Run, fake: FakeProvider) -> None:
    result = run("call", "--model", "m", "--message", "fake:rate-limit", "--raw")
    assert result.exit_code == 3
    assert "\nHTTP/1.1 429" in result.stderr


@pytest.mark.parametrize("dialect", DIALECTS)
def test_client_dialects(dialect: str, run: Run, fake: FakeProvider) -> None:
    for stream in ((), ("--stream",)):
        result = run("call", "--from", f"{dialect}/chat", "--model", "m", "--message", "hi", *stream)
        assert result.exit_code == 0, result.stderr
        side = "stream" if stream else "reply"
        profile = "documented" if dialect == "mindie" else "actual"
        judged = run("validate", f"{dialect}/chat/{side}", "--profile", profile, stdin=result.stdout_bytes)
        assert judged.stdout == "valid\n"


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("--message", "fake:status-400"), 1, "kind: invalid_request"),
        (("--message", "fake:rate-limit"), 3, "kind: rate_limit"),
        (("--message", "fake:status-500"), 3, "kind: upstream_error"),
        (("--message", "fake:cut", "--stream"), 3, "kind: upstream_invalid_response, code upstream_truncated"),
        (("--message", "fake:cut", "--stream", "--from", "azure/chat"), 3, "kind: upstream_invalid_response"),
        (("--message", "fake:rate-limit", "--stream"), 3, "status 429"),
        (("--message", "hi", "--model", "dead"), 3, "kind: upstream_unreachable"),
        (("--message", "hi", "--model", "nothing"), 1, "kind: model_not_found"),
        (("--message", "hi", "--model", "m", "--key", "other"), 1, "kind: model_not_found"),
        (("--message", "hi", "--model", "m", "--key", "ci"), 0, "status 200"),
        (("--message", "hi", "--model", "fallback"), 0, "target p/up, attempts: 2"),
        (("--header", "content-type: text/plain", "--message", "hi"), 1, "kind: unsupported_media_type"),
    ],
)
def test_outcomes(args: tuple[str, ...], code: int, told: str, run: Run, fake: FakeProvider) -> None:
    result = run("call", *(() if "--model" in args else ("--model", "m")), *args)
    assert result.exit_code == code, result.stderr
    assert told in result.stderr
    assert "canary" not in result.output


def test_errors_are_the_dialects_own_and_on_standard_output(run: Run, fake: FakeProvider) -> None:
    result = run("call", "--from", "mindie/chat", "--model", "nothing", "--message", "hi")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error_type"] == "Input Validation Error"


def test_what_is_no_json_is_sent_all_the_same(run: Run, fake: FakeProvider) -> None:
    result = run("call", "--model", "m", stdin='{"a": ')
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["code"] == "invalid_json"
    assert fake.requests == []


def test_what_is_shown_first_is_what_is_asked(run: Run, fake: FakeProvider, elsewhere: Path) -> None:
    """Targets are drawn by weight, the same ones for the plan and for the call."""
    config = (elsewhere / "dragoman.yaml").read_text()
    config += f"  many: {{targets: [{', '.join(f'{{provider: p, model: up-{i}}}' for i in range(99))}]}}\n"
    (elsewhere / "dragoman.yaml").write_text(config)
    asked = set()
    for _ in range(4):
        told = run("call", "--model", "many", "--message", "hi").stderr.splitlines()
        chosen = next(line for line in told if line.endswith(", chosen"))
        [name] = [line.split()[1].rstrip(",") for line in told if line.startswith("target ")]
        assert f"1. {name} " in chosen
        asked.add(name)
    assert len(asked) > 1
