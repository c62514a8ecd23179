"""What a provider answers, translated with what the proxy knows beside the payload: the client's request, and how the
connection ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from dragoman.contract.json_types import JsonValue

Run = Callable[..., Result]

DOCS = Path(__file__).resolve().parents[4] / "examples" / "payloads"

BAD_PARAMETER = json.dumps(
    {"error": {"message": "too long", "type": "invalid_request_error", "param": "messages[1].content", "code": "x"}}
)
RESPONSES = ("translate", "--from", "openai/chat", "--to", "openai/responses")
CHAT = ("translate", "--from", "openai/chat", "--to", "openai/chat")


@pytest.fixture
def request_file(elsewhere: Path) -> Callable[..., Path]:
    def write(**body: JsonValue) -> Path:
        path = elsewhere / "request.json"
        path.write_text(json.dumps({"model": "m", **body}), "utf-8")
        return path

    return write


def test_a_path_is_the_one_of_the_request(run: Run, request_file: Callable[..., Path]) -> None:
    request = request_file(input="hi", instructions="Be brief.")
    error = ("--side", "error", "--status", "400")
    alone = run(*RESPONSES, *error, stdin=BAD_PARAMETER)
    assert json.loads(alone.stdout)["error"]["param"] == "messages[1].content"
    known = run(*RESPONSES, *error, "--request", request, stdin=BAD_PARAMETER)
    assert json.loads(known.stdout)["error"]["param"] == "input"


def test_a_stream_is_what_the_request_asks_for(run: Run, request_file: Callable[..., Path], fixtures: Path) -> None:
    """Without the request, the client asked for usage."""
    request = request_file(messages=[{"role": "user", "content": "hi"}], stream=True)
    stream = fixtures / "openai" / "stream.sse"
    assert '"total_tokens":12' in run(*CHAT, stream).stdout
    known = run(*CHAT, "--request", request, stream)
    assert (known.exit_code, "total_tokens" in known.stdout) == (0, False), known.stderr
    whole = request_file(messages=[{"role": "user", "content": "hi"}])
    assert '"object":"chat.completion"' in run(*CHAT, "--request", whole, stream).stdout.replace(" ", "")


def test_a_whole_reply_to_a_request_for_a_stream(run: Run, request_file: Callable[..., Path], fixtures: Path) -> None:
    request = request_file(messages=[{"role": "user", "content": "hi"}], stream=True)
    result = run(*CHAT, "--request", request, fixtures / "openai" / "reply.json")
    assert (result.exit_code, result.stdout.endswith("data: [DONE]\n\n")) == (0, True), result.stderr


def test_nothing_is_stored(run: Run, request_file: Callable[..., Path], fixtures: Path) -> None:
    """As in a proxy without a store."""
    options = ("--from", "openai/responses", "--to", "openai/responses")
    kept = json.dumps({**json.loads((DOCS / "response.json").read_text("utf-8")), "store": True})
    request = request_file(input="hi", store=True)
    for more in ((), ("--request", request)):
        result = run("translate", *options, *more, stdin=kept)
        assert json.loads(result.stdout)["store"] is False, result.stderr


def test_a_connection_that_breaks(run: Run, fixtures: Path) -> None:
    """It is named as the reason, unless the answer is complete."""
    stream = (fixtures / "openai" / "stream.sse").read_bytes()
    begun = stream.split(b"\n\n")[0] + b"\n\n"
    for data, options, text in ((begun, (), "no finish reason came"), (begun, ("--cut",), "the reply was cut short")):
        result = run(*CHAT, *options, stdin=data)
        assert result.exit_code == 1
        assert text in result.stdout
        assert "code upstream_truncated" in result.stderr
    assert run(*CHAT, "--cut", stdin=stream).exit_code == 0
    reply = run(*CHAT, "--cut", fixtures / "openai" / "reply.json")
    assert (reply.exit_code, reply.stdout) == (1, "")
    assert "the reply was cut short" in reply.stderr


@pytest.mark.parametrize("options", [("--cut",), ("--request", "request.json")])
def test_a_request_answers_nothing(options: tuple[str, ...], run: Run, fixtures: Path) -> None:
    result = run(*CHAT, *options, fixtures / "openai" / "request.json")
    assert result.exit_code == 2
    assert "the payload is a request" in result.stderr


def test_a_request_that_cannot_be_served(run: Run, request_file: Callable[..., Path], fixtures: Path) -> None:
    stream = fixtures / "openai" / "stream.sse"
    result = run(*CHAT, "--request", request_file(), stream)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--request: messages" in result.stderr
    several = request_file(prompt=["a", "b"])
    completions = ("translate", "--from", "openai/chat", "--to", "openai/completions")
    result = run(*completions, "--policy", "emulate_completions=true", "--request", several, stream)
    assert result.exit_code == 2
    assert "2 calls" in result.stderr
