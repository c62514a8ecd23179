"""Embeddings in the offline commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.dialects import called

Run = Callable[..., Result]
MANY = json.dumps({"model": "m", "input": [f"text {number}" for number in range(400)], "encoding_format": "base64"})
REPLY = {"index": 0, "object": "embedding", "embedding": [0.5, 1.0]}
CONFIG = """\
providers: {p: {dialect: databricks, base_url: "https://x.example", protocols: [chat, embeddings]}}
models: {m: {targets: [{provider: p, model: gte}]}}
"""


def test_a_large_request_becomes_several_calls(run: Run) -> None:
    result = run("translate", "--from", "openai/embeddings", "--to", "databricks/embeddings", stdin=MANY)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["input"] == [f"text {number}" for number in range(150)]
    assert result.stderr.splitlines()[:3] == [
        "note: the payload looks like a request; if it is something else, set --side",
        "the first of 3 calls:",
        "POST /serving-endpoints/m/invocations",
    ]


@pytest.mark.parametrize("goal", called("embeddings"))
def test_replies(run: Run, goal: str) -> None:
    body = {"object": "list", "data": [REPLY], "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    result = run("translate", "--from", "openai/embeddings", "--to", f"{goal}/embeddings", stdin=json.dumps(body))
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["data"] == [REPLY]
    assert "looks like a reply" in result.stderr


def test_there_are_no_streams(run: Run) -> None:
    result = run("translate", "--from", "openai/embeddings", "--to", "azure/embeddings", stdin="data: {}\n\n")
    assert result.exit_code == 1
    assert "embeddings are not streamed" in result.stderr
    result = run("validate", "openai/embeddings/stream", stdin="")
    assert result.exit_code == 2
    assert "there is no payload" in result.stderr


def test_validate(run: Run) -> None:
    assert run("validate", "openai/embeddings/request", stdin=MANY).exit_code == 0
    result = run("validate", "azure/embeddings/request", stdin='{"input": ["x", 1]}')
    assert result.exit_code == 1
    assert "input[1] must be of type string, got integer" in result.stdout
    result = run("validate", "openai/embeddings/request", stdin='{"model": "m", "input": "x", "api_base": "x"}')
    assert "api_base is not accepted" in result.stdout
    body = {"object": "list", "data": [{**REPLY, "embedding": [0.5, None]}], "model": "m", "usage": {}}
    result = run("validate", "openai/embeddings/reply", stdin=json.dumps(body))
    assert "data[0].embedding[1] must be of type number, got null" in result.stdout


def test_explain(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "dragoman.yaml"
    config.write_text(CONFIG)
    args = ("explain", "--config", str(config), "--from", "openai/embeddings")
    result = run(*args, stdin=MANY)
    assert result.exit_code == 0, result.stdout
    assert "the first of 3 calls:" in result.stdout
    assert json.loads(run(*args, "--format", "json", stdin=MANY).stdout)["calls"] == 3
    plan = json.loads(run(*args, "--model", "m", "--message", "hello", "--format", "json").stdout)
    assert (plan["calls"], plan["call"]["body"]) == (1, {"input": "hello"})
    assert run(*args, stdin='{"model": "m", "input": [15339, 1917]}').exit_code == 0
    config.write_text(f"{CONFIG}\nemulate: {{token_arrays: false}}\n")
    assert run(*args, stdin='{"model": "m", "input": [15339, 1917]}').exit_code == 1
