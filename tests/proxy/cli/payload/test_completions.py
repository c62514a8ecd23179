"""Completions in the offline commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.dialects import called

Run = Callable[..., Result]
CONFIG = """\
providers:
  d: {dialect: databricks, base_url: "https://x.example", protocols: [chat, completions]}
  m: {dialect: mindie, base_url: "https://y.example"}
models:
  there: {targets: [{provider: d, model: llama}]}
  not-there: {targets: [{provider: m, model: qwen}]}
  stood-in: {targets: [{provider: m, model: qwen, policy: {emulate_completions: true}}]}
"""
REPLY = {
    "id": "c",
    "object": "text_completion",
    "created": 7,
    "choices": [{"index": 0, "text": "a", "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}


def test_a_request(run: Run) -> None:
    body = json.dumps({"model": "m", "prompt": "hi", "user": "u"})
    result = run("translate", "--from", "openai/completions", "--to", "databricks/completions", stdin=body)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == {"prompt": "hi", "stream": False}
    assert "looks like a request" in result.stderr
    assert "POST /serving-endpoints/m/invocations" in result.stderr
    assert "loss  dropped    user: " in result.stderr


@pytest.mark.parametrize("goal", called("completions"))
def test_a_reply(run: Run, goal: str) -> None:
    source = ("translate", "--from", "databricks/completions", "--to", f"{goal}/completions")
    result = run(*source, stdin=json.dumps(REPLY))
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["choices"][0]["text"] == "a"
    assert "looks like a reply" in result.stderr


def test_a_stream(run: Run) -> None:
    event = {**REPLY, "choices": [{"index": 0, "text": "a", "finish_reason": None}]}
    stream = f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n"
    result = run("translate", "--from", "databricks/completions", "--to", "openai/completions", stdin=stream)
    assert result.exit_code == 1
    assert '"text":"a"' in result.stdout and '"code":"upstream_truncated"' in result.stdout


def test_validate(run: Run) -> None:
    assert run("validate", "databricks/completions/reply", stdin=json.dumps(REPLY)).exit_code == 0
    result = run("validate", "openai/completions/request", stdin='{"model": "m", "prompt": "x", "n": 2, "best_of": 1}')
    assert result.exit_code == 1
    assert "best_of must be at least n" in result.stdout
    result = run("validate", "databricks/completions/stream", stdin="data: [DONE]\n\n")
    assert "no finish reason came" in result.stdout


def test_explain(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "dragoman.yaml"
    config.write_text(CONFIG)

    def plan(model: str) -> Result:
        return run("explain", "--config", str(config), "--from", "openai/completions", "--model", model,
                   "--message", "hello", "--format", "json")  # fmt: skip

    assert json.loads(plan("there").stdout)["call"]["body"] == {"prompt": "hello", "stream": False}
    refused = plan("not-there")
    assert refused.exit_code == 1
    assert "emulate_completions" in json.loads(refused.stdout)["fault"]["message"]
    stood_in = json.loads(plan("stood-in").stdout)
    assert stood_in["call"]["body"]["messages"] == [{"role": "user", "content": "hello"}]
    assert [change["before"] for change in stood_in["changes"] if change["weight"] == "loss"] == ["prompt"]


def test_the_policy_is_true_or_false(run: Run) -> None:
    result = run("translate", "--from", "openai/chat", "--to", "mindie/chat", "--policy", "emulate_completions=maybe",
                 stdin="{}")  # fmt: skip
    assert result.exit_code == 2
    assert "one of: true, false" in result.stderr
