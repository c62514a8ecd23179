"""Payloads that cross from one conversation protocol to the other, every side of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from typer.testing import Result

from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonValue
from tests.dialects import called

Run = Callable[..., Result]

CHAT = called("chat")
RESPONSES = called("responses")
PAIRS = list(product(RESPONSES, CHAT))
SERVED = {"openai": "actual", "databricks": "actual", "azure": "actual", "mindie": "documented"}
FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}


def to(run: Run, origin: str, goal: str, *args: str | Path, stdin: str | bytes = b"") -> Result:
    return run("translate", "--from", origin, "--to", goal, *args, stdin=stdin)


def done(result: Result) -> JsonValue:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(("client", "provider"), PAIRS)
def test_a_responses_request_for_a_chat_provider(client: str, provider: str, run: Run) -> None:
    tools = [{"type": "function", **FUNCTION}]
    request = {"model": "m", "instructions": "Be brief.", "input": "Hello", "tools": tools, "max_output_tokens": 50}
    result = to(run, f"{client}/responses", f"{provider}/chat", stdin=json.dumps(request))
    body = done(result)
    assert load_validator(f"{provider}/chat.request", "actual").accepts(body)
    assert [message["content"] for message in body["messages"]] == ["Be brief.", "Hello"]
    assert body["tools"][0]["function"]["name"] == "f"
    assert (
        result.stderr.splitlines()[0] == "note: the payload looks like a request; if it is something else, set --side"
    )


@pytest.mark.parametrize(("provider", "client"), PAIRS)
def test_a_chat_request_for_a_responses_provider(client: str, provider: str, run: Run, fixtures: Path) -> None:
    result = to(run, f"{client}/chat", f"{provider}/responses", "--model", "up", fixtures / client / "request.json")
    body = done(result)
    assert load_validator(f"{provider}/responses.request", "actual").accepts(body)
    assert (body["model"], body["max_output_tokens"], body["instructions"]) == ("up", 64, "Be brief.")


@pytest.mark.parametrize(("client", "provider"), PAIRS)
def test_a_chat_reply_for_a_responses_client(client: str, provider: str, run: Run, fixtures: Path) -> None:
    body = done(to(run, f"{provider}/chat", f"{client}/responses", fixtures / provider / "reply.json"))
    assert load_validator(f"{client}/responses.reply", SERVED[client]).accepts(body)
    assert (body["status"], body["output"][0]["content"][0]["text"]) == ("completed", "Hello there")


@pytest.mark.parametrize(("client", "provider"), PAIRS)
def test_streams_there_and_back(client: str, provider: str, run: Run, fixtures: Path) -> None:
    there = to(run, f"{provider}/chat", f"{client}/responses", fixtures / provider / "stream.sse")
    assert there.exit_code == 0, there.stderr
    judged = run("validate", f"{client}/responses/stream", "--profile", SERVED[client], stdin=there.stdout_bytes)
    assert (judged.exit_code, judged.stdout) == (0, "valid\n"), judged.stdout
    back = to(run, f"{client}/responses", f"{provider}/chat", stdin=there.stdout_bytes)
    assert back.exit_code == 0, back.stderr
    events = [line.removeprefix("data: ") for line in back.stdout.split("\n\n")][:-2]
    chunks = [json.loads(event) for event in events]
    assert "".join(choice["delta"].get("content") or "" for one in chunks for choice in one["choices"]) == "Hello there"
    judged = run("validate", f"{provider}/chat/stream", "--profile", SERVED[provider], stdin=back.stdout_bytes)
    assert (judged.exit_code, judged.stdout) == (0, "valid\n"), judged.stdout


@pytest.mark.parametrize(("client", "provider"), PAIRS)
def test_replies_there_and_back(client: str, provider: str, run: Run, fixtures: Path) -> None:
    there = to(run, f"{provider}/chat", f"{client}/responses", fixtures / provider / "reply.json")
    back = to(run, f"{client}/responses", f"{provider}/chat", stdin=there.stdout_bytes)
    assert back.stderr.splitlines()[0] == "note: the payload looks like a reply; if it is something else, set --side"
    body = done(back)
    assert load_validator(f"{provider}/chat.reply", SERVED[provider]).accepts(body)
    assert body["choices"][0]["message"]["content"] == "Hello there"
    assert body["usage"]["total_tokens"] == 12


@pytest.mark.parametrize(("client", "provider"), PAIRS)
def test_errors(client: str, provider: str, run: Run, fixtures: Path) -> None:
    body = done(to(run, f"{provider}/chat", f"{client}/responses", fixtures / provider / "error.json"))
    assert load_validator(f"{client}/responses.error", SERVED[client]).accepts(body)
    assert "Slow down." in json.dumps(body)


def test_a_broken_stream_fails_in_the_clients_way(run: Run, fixtures: Path) -> None:
    first = (fixtures / "mindie" / "stream.sse").read_bytes().split(b"\n\n")[0] + b"\n\n"
    result = to(run, "mindie/chat", "databricks/responses", stdin=first)
    assert result.exit_code == 1
    assert "event: error\n" in result.stdout
    assert "event: response.failed\n" in result.stdout
    assert '"error_code":"INTERNAL_ERROR"' in result.stdout
    assert "code upstream_truncated" in result.stderr


def test_mended_replies_whatever_the_policy(run: Run, fixtures: Path) -> None:
    options = ("--policy", "replies=off", fixtures / "mindie" / "reply.json")
    assert done(to(run, "mindie/chat", "openai/responses", *options))["status"] == "completed"


def test_a_fault_has_the_clients_path_and_error(run: Run) -> None:
    request = {"model": "m", "input": [{"role": "user", "content": "x"}], "top_p": 0}
    result = to(run, "openai/responses", "mindie/chat", "--to-profile", "documented", stdin=json.dumps(request))
    assert (result.exit_code, result.stdout) == (1, "")
    assert '"param": "top_p"' in result.stderr
    orphan = [{"type": "function_call_output", "call_id": "c", "output": "x"}]
    result = to(run, "databricks/responses", "mindie/chat", stdin=json.dumps({"model": "m", "input": orphan}))
    assert "  path: input[0].call_id" in result.stderr
    assert '"error_code": "INVALID_PARAMETER_VALUE"' in result.stderr


@pytest.mark.parametrize("client", RESPONSES)
def test_requests_are_judged_beyond_their_schema(client: str, run: Run) -> None:
    function = {**FUNCTION, "parameters": {"type": "object", "$ref": "http://example.com/x"}}
    request = json.dumps({"model": "m", "input": "x", "tools": [{"type": "function", **function}]})
    result = run("validate", f"{client}/responses/request", "--profile", "actual", stdin=request)
    assert result.exit_code == 1
    assert "$ref" in result.stdout
    assert run("validate", f"{client}/responses/request", stdin='{"model": "m", "input": "x"}').stdout == "valid\n"


CONFIG = """
providers: {p: {dialect: mindie, base_url: "http://127.0.0.1:9/"}}
models: {m: {targets: [{provider: p}]}}
"""


@pytest.mark.parametrize("client", RESPONSES)
def test_explain_shows_the_bridge(client: str, run: Run, elsewhere: Path) -> None:
    (elsewhere / "c.yaml").write_text(CONFIG, "utf-8")
    options = ("--config", "c.yaml", "--model", "m", "--message", "Hello", "--format", "json")
    plan = done(run("explain", "--from", f"{client}/responses", *options))
    assert plan["call"]["body"]["messages"] == [{"role": "user", "content": "Hello"}]
    assert plan["call"]["url"].endswith("/v1/chat/completions")
