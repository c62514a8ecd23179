"""Every side from every dialect to every other, and what is told beside the payload."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from typer.testing import Result

from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonValue
from tests.dialects import DIALECTS

Run = Callable[..., Result]

PAIRS = list(product(DIALECTS, DIALECTS))
SERVED = {"openai": "actual", "databricks": "actual", "azure": "actual", "mindie": "documented"}
HEADS = {
    "openai": "POST /chat/completions",
    "databricks": "POST /serving-endpoints/up%2Fstream/invocations",
    "azure": "POST /chat/completions?api-version=2024-05-01-preview",
    "mindie": "POST /v1/chat/completions",
}


def to(run: Run, origin: str, goal: str, *args: str | Path, stdin: str | bytes = b"") -> Result:
    return run("translate", "--from", f"{origin}/chat", "--to", f"{goal}/chat", *args, stdin=stdin)


@pytest.mark.parametrize(("origin", "goal"), PAIRS)
def test_request(origin: str, goal: str, run: Run, fixtures: Path) -> None:
    result = to(run, origin, goal, "--model", "up/stream", fixtures / origin / "request.json")
    assert result.exit_code == 0, result.stderr
    body = json.loads(result.stdout)
    name = "max_completion_tokens" if origin == goal == "openai" else "max_tokens"
    assert body[name] == 64
    assert [message["content"] for message in body["messages"]] == ["Be brief.", "Grüß Gott"]
    assert body.get("model") == (None if goal == "databricks" else "up/stream")
    assert load_validator(f"{goal}/chat.request", "actual").accepts(body)
    assert result.stderr.splitlines()[:2] == [
        "note: the payload looks like a request; if it is something else, set --side",
        HEADS[goal],
    ]


@pytest.mark.parametrize(("origin", "goal"), PAIRS)
def test_reply(origin: str, goal: str, run: Run, fixtures: Path) -> None:
    result = to(run, origin, goal, fixtures / origin / "reply.json")
    assert result.exit_code == 0, result.stderr
    body = json.loads(result.stdout)
    [choice] = body["choices"]
    assert choice["message"]["content"] == "Hello there"
    assert choice["finish_reason"] == ("eos_token" if goal == "mindie" else "stop")
    assert load_validator(f"{goal}/chat.reply", SERVED[goal]).accepts(body)
    assert result.stderr.splitlines()[0] == "note: the payload looks like a reply; if it is something else, set --side"
    assert "status 200" in result.stderr.splitlines()


@pytest.mark.parametrize(("origin", "goal"), PAIRS)
def test_stream(origin: str, goal: str, run: Run, fixtures: Path) -> None:
    result = to(run, origin, goal, fixtures / origin / "stream.sse")
    assert result.exit_code == 0, result.stderr
    events = [line.removeprefix("data: ") for line in result.stdout.split("\n\n")]
    assert events[-2:] == ["[DONE]", ""]
    chunks = [json.loads(event) for event in events[:-2]]
    said = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    assert said == "Hello there"
    assert [chunk["usage"]["total_tokens"] for chunk in chunks if chunk.get("usage")] == [12] * (goal != "mindie")
    judged = run("validate", f"{goal}/chat/stream", "--profile", SERVED[goal], stdin=result.stdout_bytes)
    assert (judged.exit_code, judged.stdout) == (0, "valid\n"), judged.stdout


@pytest.mark.parametrize(("origin", "goal"), PAIRS)
def test_error(origin: str, goal: str, run: Run, fixtures: Path) -> None:
    result = to(run, origin, goal, "--header", "Retry-After: 7", fixtures / origin / "error.json")
    assert result.exit_code == 0, result.stderr
    body = json.loads(result.stdout)
    assert "Slow down." in json.dumps(body)
    assert load_validator(f"{goal}/chat.error", SERVED[goal]).accepts(body)
    unavailable = origin == "mindie"  # which has no word for too many requests
    status = 503 if goal == "mindie" or unavailable else 429
    lines = result.stderr.splitlines()
    assert f"status {status}" in lines
    assert "retry-after: 7" in lines
    kind = "upstream_unavailable" if unavailable else "rate_limit"
    assert lines[-1].startswith(f"understood as: {kind}, the provider's fault")


REQUEST = {
    "model": "gpt-5",
    "messages": [{"role": "user", "content": "Hello"}, {"role": "system", "content": "Be brief."}],
    "max_completion_tokens": 100,
    "seed": 1,
    "user": "u1",
    "frequency_penalty": 0,
    "top_k": 3,
}


def test_receipt_and_call(run: Run) -> None:
    options = ("--policy", "unsupported=drop", "--side", "request", "--model", "llama")
    result = to(run, "openai", "databricks", *options, stdin=json.dumps(REQUEST))
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "top_k": 3,
        "max_tokens": 100,
        "stream": False,
    }
    assert result.stderr == (
        "POST /serving-endpoints/llama/invocations\n"
        "form  renamed    max_completion_tokens -> max_tokens: the target's name for it\n"
        "form  moved      model: the address names the endpoint\n"
        "form  moved      messages[1] -> messages[0]: the target takes one system message, first\n"
        "loss  dropped    seed: the target's API does not have it\n"
        "loss  dropped    user: the target's API does not have it; it is advisory\n"
        "form  dropped    frequency_penalty: the target's API does not have it; leaving it out means the same\n"
        "form  filled     -> stream: some servers stream by default\n"
    )


def test_nothing_changed(run: Run, fixtures: Path) -> None:
    result = to(run, "openai", "openai", "--side", "request", fixtures / "openai" / "request.json")
    assert result.stderr == "POST /chat/completions\nnothing changed\n"


def test_output_is_the_same_whatever_is_told(run: Run, fixtures: Path) -> None:
    """The payload alone is on standard output, in UTF-8, whole numbers and fractions as they came."""
    result = to(run, "openai", "openai", fixtures / "openai" / "request.json")
    assert result.stdout_bytes == (fixtures / "openai" / "request.json").read_bytes()


def text(content: str = "x", **more: JsonValue) -> str:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}], **more})


FAULTS = [
    # from, to, options, payload, kind, path, a word of what the client gets
    ("openai", "databricks", (), text(seed=1), "unsupported_parameter", "seed", '"param": "seed"'),
    ("openai", "azure", (), text(stop=["a"] * 9), "invalid_request", "stop", '"type": "invalid_request_error"'),
    ("databricks", "azure", (), text(n="x"), "invalid_request", "n", '"error_code": "INVALID_PARAMETER_VALUE"'),
    ("azure", "openai", (), text(frob=1), "extra_parameter", "frob", '"status": 400'),
    ("azure", "openai", ("--query", "api-version=1"), text(), "invalid_request", "api-version", '"status": 400'),
    ("azure", "openai", ("--header", "extra-parameters: no"), text(frob=1), "invalid_request", "extra-par", '"status"'),
    ("mindie", "openai", (), text(temperature=9), "invalid_request", "temperature", '"error_type": "Input Validation'),
    ("openai", "openai", (), '{"model": "m"}', "invalid_request", "messages", '"param": "messages"'),
    ("openai", "openai", ("--side", "request"), "[]", "invalid_request", None, "expected object, got array"),
    ("openai", "openai", (), '{"a": 1,\n "a"', "invalid_request", None, "line 2"),
    ("openai", "openai", ("--side", "request"), "", "invalid_request", None, "The body is empty"),
    (
        "mindie",
        "openai",
        ("--side", "reply"),
        "oh no",
        "upstream_invalid_response",
        None,
        '"code": "upstream_invalid_json"',
    ),
    ("mindie", "azure", ("--side", "reply"), '{"choices": []}', "upstream_invalid_response", None, '"status": 502'),
]


@pytest.mark.parametrize(("origin", "goal", "options", "payload", "kind", "path", "native"), FAULTS)
def test_fault(
    origin: str, goal: str, options: tuple[str, ...], payload: str, kind: str, path: str | None, native: str, run: Run
) -> None:
    result = to(run, origin, goal, *options, *(() if "--side" in options else ("--side", "request")), stdin=payload)
    assert (result.exit_code, result.stdout) == (1, ""), result.stderr
    assert "error: " in result.stderr
    assert f"  kind: {kind}, the " in result.stderr
    assert ("  path: " in result.stderr) is (path is not None)
    assert path is None or f"  path: {path}" in result.stderr
    assert native in result.stderr
    assert "nothing changed" not in result.stderr


def test_path_is_the_one_that_the_client_wrote(run: Run) -> None:
    """Toward databricks the system message moves to the front; the fault is found behind it."""
    messages = [
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}]},
        {"role": "system", "content": "x"},
    ]
    result = to(run, "openai", "databricks", stdin=json.dumps({"model": "m", "messages": messages}))
    assert result.exit_code == 1
    assert "  path: messages[0].content[0]" in result.stderr


def test_broken_stream_is_told_in_the_stream_and_by_the_status(run: Run, fixtures: Path) -> None:
    first, second, *_ = (fixtures / "mindie" / "stream.sse").read_bytes().split(b"\n\n")
    result = to(run, "mindie", "azure", stdin=first + b"\n\n" + second + b"\n\n")
    assert result.exit_code == 1
    assert '"code":"upstream_truncated"' in result.stdout
    assert "[DONE]" not in result.stdout
    assert "then the proxy breaks the client's connection" in result.stderr
    assert "kind: upstream_invalid_response, the provider's fault, code upstream_truncated" in result.stderr


@pytest.mark.parametrize(
    ("payload", "options", "side"),
    [
        ('{"messages": 1, "choices": 1}', (), "a request"),
        ('{"choices": 1}', (), "a reply"),
        ('{"choices": 1}', ("--status", "400"), "an error"),
        ('{"error": 1}', (), "an error"),
        ("[1]", (), "an error"),
        ("Server internal error", (), "an error"),
        ('{"messages": ', (), "a request"),
        ("", (), "a request"),
        ("\ufeff\n: hello\n\n", (), "a stream"),
        ("data: {}\n\n", (), "a stream"),
        ("event: x\ndata: {}\n\n", (), "a stream"),
    ],
)
def test_side_is_guessed(payload: str, options: tuple[str, ...], side: str, run: Run) -> None:
    result = to(run, "openai", "openai", *options, stdin=payload.encode())
    assert result.stderr.splitlines()[0] == f"note: the payload looks like {side}; if it is something else, set --side"


def test_status_decides(run: Run) -> None:
    error = '{"error": "no", "error_type": "of no known kind"}'
    for status, written in ((400, 400), (429, 429), (504, 504), (401, 502)):
        result = to(run, "mindie", "openai", "--side", "error", "--status", str(status), stdin=error)
        assert result.stderr.splitlines()[0] == f"status {written}"
    result = to(run, "mindie", "openai", "--side", "reply", "--status", "429", stdin=error)
    assert result.stderr.splitlines()[0] == "status 429"


def test_profiles(run: Run) -> None:
    documented = to(run, "openai", "mindie", "--to-profile", "documented", stdin=text(logprobs=True))
    actual = to(run, "openai", "mindie", stdin=text(logprobs=True))
    assert "logprobs cannot be served" in documented.stderr
    assert (actual.exit_code, json.loads(actual.stdout)["logprobs"]) == (0, True)
    served = {
        profile: to(run, "databricks", "openai", "--profile", profile, stdin=text()) for profile in SERVED.values()
    }
    assert "stream" not in json.loads(served["actual"].stdout)
    assert json.loads(served["documented"].stdout)["stream"] is True
    mixed = to(run, "databricks", "openai", "--profile", "documented", "--from-profile", "actual", stdin=text())
    assert mixed.stdout == served["actual"].stdout


def test_emulation(run: Run) -> None:
    documented = to(run, "openai", "mindie", "--to-profile", "documented", stdin=text(n=2, stop="END"))
    assert documented.exit_code == 0
    assert json.loads(documented.stdout).keys().isdisjoint({"n", "stop"})
    assert "the first of 2 calls:" in documented.stderr
    assert "form  emulated   n: 2 calls make the 2 choices" in documented.stderr
    assert "form  emulated   stop: " in documented.stderr


def test_policies(run: Run) -> None:
    options = ("--policy", "out-of-range=clamp", "--policy", "extra_parameters=error")
    clamped = to(run, "openai", "mindie", "--to-profile", "documented", *options, stdin=text(temperature=0))
    assert clamped.exit_code == 0, clamped.stderr
    assert "loss  clamped    temperature: temperature must be greater than 0, got 0; sent as 0.001\n" in clamped.stderr
    assert to(run, "openai", "mindie", *options, stdin=text(frob=1)).exit_code == 1
    assert to(run, "openai", "mindie", stdin=text(frob=1)).exit_code == 0
    dropped = to(run, "openai", "mindie", "--header", "Extra-Parameters: drop", stdin=text(frob=1))
    assert "frob" not in json.loads(dropped.stdout)


def test_model_and_path(run: Run) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]})
    named = [
        (("databricks", "openai"), ("--path", "/serving-endpoints/a%20b/invocations"), "a b"),
        (("databricks", "openai"), (), "model"),
        (("databricks", "openai"), ("--model", "m"), "m"),
        (("openai", "mindie"), ("--model", "m"), "m"),
        (("azure", "openai"), (), "model"),
        (("azure", "databricks"), (), None),
    ]
    for (origin, goal), options, model in named:
        result = to(run, origin, goal, *options, stdin=body)
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout).get("model") == model
    assert to(run, "openai", "mindie", stdin=body).exit_code == 1
