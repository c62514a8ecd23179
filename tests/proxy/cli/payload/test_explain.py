"""Where a request would go, and what would be sent there, without sending anything."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import aiohttp
import pytest
from typer.testing import Result

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.cli.payload.client_request import ClientRequest
from dragoman.proxy.cli.payload.explain import explain
from dragoman.proxy.cli.payload.wire_format import WireFormat
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start
from tests.dialects import DIALECTS

Run = Callable[..., Result]

CONFIG = """\
keys:
  - {name: ci, key: "${KEY:-key-canary}"}
  - {name: reports, key: "${KEY:-other-canary}", models: [careful, "gpt-*"]}
server: {default_model: fast, profiles: {mindie: actual}}
providers:
  lakehouse: {dialect: databricks, base_url: "https://adb-1.azuredatabricks.net", api_key: "${T:-dapi-canary}"}
  ascend: {dialect: mindie, base_url: "https://10.0.0.8:1025", limits: {max_tokens: 50}}
  foundry:
    dialect: azure
    base_url: https://x.services.ai.azure.com/models
    api_key: ${T:-azure-canary}
    headers: {X-Team: "${T:-team-canary}"}
  openai: {dialect: openai, base_url: "https://api.openai.com/v1", api_key: "${T:-sk-canary}"}
models:
  fast:
    targets:
      - {provider: foundry, model: Phi-4, deployment: blue, weight: 1}
      - {provider: lakehouse, model: llama, weight: 3}
      - {provider: ascend, model: qwen3, weight: 0}
    fallbacks: [careful, gpt-5]
  careful: {targets: [{provider: openai, model: gpt-5}], policy: {unsupported: drop}}
  "gpt-*": {targets: [{provider: openai}]}
  "azure/*": {targets: [{provider: foundry, strip: azure/}]}
  picky:
    targets:
      - {provider: lakehouse, model: llama, weight: 3}
      - {provider: ascend, model: qwen3, weight: 2}
      - {provider: openai, model: gpt-5, lacks: [temperature], weight: 1}
  exact:
    targets: [{provider: lakehouse, model: llama, weight: 3}, {provider: ascend, model: qwen3}]
    emulate: {n: false}
  odd: {targets: [{provider: lakehouse, model: ".."}]}
  easy: {targets: [{provider: ascend, model: qwen3}], policy: {preset: lenient}}
  bare:
    targets: [{provider: ascend, model: qwen3, lacks: [response_format]}]
    emulate: {response_format: tool, usage: count, hold_streams: false}
"""


@pytest.fixture(autouse=True)
def config(elsewhere: Path) -> None:
    (elsewhere / "dragoman.yaml").write_text(CONFIG)


@pytest.fixture
def unplugged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks up a host or connects fails the test."""

    def refuse(*args: object, **options: object) -> NoReturn:
        raise AssertionError(f"the network was used: {args}")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def plan(run: Run, *args: str, code: int = 0, stdin: str | None = None) -> JsonObject:
    given = ("--message", "hi") if stdin is None else ()
    result = run("explain", "--format", "json", *args, *given, stdin=stdin or "")
    assert result.exit_code == code, result.output
    assert "canary" not in result.output
    return json.loads(result.stdout)


def order(told: JsonObject) -> list[tuple[str, float]]:
    return [(f"{target['provider']}/{target['model']}", target["chance"]) for target in told["targets"]]


@pytest.mark.usefixtures("unplugged")
def test_weights_and_fallbacks(run: Run) -> None:
    told = plan(run, "--model", "fast")
    assert (told["model"], told["entry"], told["match"]) == ("fast", "fast", "exact")
    assert order(told) == [
        ("lakehouse/llama", 0.75),
        ("foundry/Phi-4", 0.25),
        ("ascend/qwen3", 0.0),
        ("openai/gpt-5", 0.0),
        ("openai/gpt-5", 0.0),
    ]
    assert [target["entry"] for target in told["targets"]] == ["fast", "fast", "fast", "careful", "gpt-*"]
    assert [target["fallback"] for target in told["targets"]] == [False, False, False, True, True]
    assert [target["chosen"] for target in told["targets"]] == [True, False, False, False, False]


@pytest.mark.usefixtures("unplugged")
def test_call(run: Run) -> None:
    told = plan(run, "--model", "fast", "--header", "TraceParent: 00-1", "--header", "Authorization: Bearer x-canary")
    assert told["call"] == {
        "method": "POST",
        "url": "https://adb-1.azuredatabricks.net/serving-endpoints/llama/invocations",
        "headers": {
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": told["call"]["headers"]["User-Agent"],
            "Authorization": "Bearer ***",
            "Accept": "application/json",
            "traceparent": "00-1",
        },
        "body": {"messages": [{"role": "user", "content": "hi"}], "stream": False},
    }
    assert [change["action"] for change in told["changes"]] == ["moved", "filled"]


@pytest.mark.usefixtures("unplugged")
def test_wildcard_strip_and_masks(run: Run) -> None:
    told = plan(run, "--model", "azure/Phi-4")
    assert (told["entry"], told["match"]) == ("azure/*", "pattern")
    assert (
        told["call"]["url"] == "https://x.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview"
    )
    assert told["call"]["body"]["model"] == "Phi-4"
    headers = told["call"]["headers"]
    assert (headers["api-key"], headers["Authorization"], headers["X-Team"]) == ("***", "Bearer ***", "***")


REQUEST = '{"model": "picky", "messages": [{"role": "user", "content": "x"}], "temperature": 0.5, "seed": 1, "n": 1%s}'


@pytest.mark.usefixtures("unplugged")
def test_skips(run: Run) -> None:
    told = plan(run, stdin=REQUEST % ', "max_completion_tokens": 40')
    skipped = [target["skipped"] for target in told["targets"]]
    assert (skipped[0]["kind"], skipped[0]["path"]) == ("unsupported_parameter", "seed")
    assert skipped[1] is None
    assert skipped[2]["message"] == (
        "temperature cannot be served: the target is configured without it"
        "; leave it out, or set the policy unsupported to drop"
    )
    assert order(told) == [("lakehouse/llama", 0.0), ("ascend/qwen3", 1.0), ("openai/gpt-5", 0.0)]
    assert told["call"]["url"] == "https://10.0.0.8:1025/v1/chat/completions"


@pytest.mark.usefixtures("unplugged")
def test_no_target_left(run: Run) -> None:
    told = plan(run, stdin=REQUEST % ', "max_completion_tokens": 51', code=1)
    assert all(target["skipped"] for target in told["targets"])
    assert told["targets"][1]["skipped"]["path"] == "max_completion_tokens"
    assert told["call"] is None
    assert (told["fault"]["kind"], told["fault"]["path"]) == ("unsupported_parameter", "seed")
    assert told["answer"]["status"] == 400
    assert told["answer"]["body"]["error"]["param"] == "seed"


@pytest.mark.usefixtures("unplugged")
def test_text(run: Run) -> None:
    result = run("explain", stdin=REQUEST % "")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[:7] == [
        "model picky, found by its name",
        "",
        "1. lakehouse/llama (databricks): weight 3, skipped: seed cannot be served: the target's API does not have it"
        "; leave it out, or set the policy unsupported to drop",
        "   unsupported_parameter at seed",
        "2. ascend/qwen3 (mindie): weight 2, 100% chance to be tried first, chosen",
        "3. openai/gpt-5 (openai): weight 1, skipped:"
        " temperature cannot be served: the target is configured without it"
        "; leave it out, or set the policy unsupported to drop",
        "   unsupported_parameter at temperature",
    ]
    assert "POST https://10.0.0.8:1025/v1/chat/completions" in lines
    assert '  "temperature": 0.5,' in lines
    assert lines[-1] == "nothing changed"


MANY = '{"model": "%s", "messages": [{"role": "user", "content": "x"}], "seed": 1, "n": 2, "temperature": 0}'


def test_every_reason_of_every_skipped_target_is_shown(run: Run) -> None:
    lines = run("explain", stdin=MANY % "exact").stdout.splitlines()
    first = [line for line in lines[2:] if line.startswith(("1.", "   "))][:4]
    assert first[1] == "   unsupported_parameter at n"
    assert first[2].startswith("   and: seed cannot be served: ")
    assert "   not emulated: n" in lines
    told = plan(run, stdin=MANY % "exact", code=1)
    reasons = [[one["path"] for one in (t["skipped"], *t["skipped"].get("others", ()))] for t in told["targets"]]
    assert reasons == [["n", "seed"], ["temperature"]]
    assert [one["param"] for one in told["answer"]["body"]["error"]["details"]] == ["n", "seed"]
    assert "lakehouse/llama" in told["answer"]["body"]["error"]["message"]


def test_the_policy_of_a_target_is_shown_if_it_is_not_the_default(run: Run) -> None:
    lines = run("explain", stdin=MANY % "easy").stdout.splitlines()
    assert lines[3] == ("   policy: extra_parameters drop, unsupported drop, out_of_range clamp (preset lenient)")
    told = plan(run, stdin=MANY % "easy")
    assert told["targets"][0]["policy"]["preset"] == "lenient"
    assert {change["weight"] for change in told["changes"]} == {"loss"}
    assert plan(run, "--model", "fast")["targets"][0]["policy"]["preset"] == "faithful"
    assert plan(run, "--model", "fast")["targets"][0]["emulate"]["n"] is True


def test_what_is_emulated_on_request_is_shown(run: Run) -> None:
    asked = (
        '{"model": "bare", "messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_object"}}'
    )
    lines = run("explain", stdin=asked).stdout.splitlines()
    assert "   emulated: response_format tool, usage count, streams are not held" in lines
    told = plan(run, stdin=asked)
    chosen = told["targets"][0]["emulate"]
    assert (chosen["response_format"], chosen["tools"], chosen["usage"]) == ("tool", None, "count")
    assert told["changes"][0]["action"] == "emulated"


def test_what_is_documented_about_the_model_is_shown_with_its_source(run: Run) -> None:
    lines = run("explain", "--model", "careful", "--message", "hi").stdout.splitlines()
    assert "what is documented about gpt-5 (GPT-5):" in lines
    assert "   max_tokens_name: max_completion_tokens (Microsoft, Azure OpenAI reasoning models)" in lines
    facts = {fact["name"]: fact for fact in plan(run, "--model", "careful", "--message", "hi")["targets"][0]["facts"]}
    assert facts["efforts"]["value"] == ["minimal", "low", "medium", "high"]
    assert facts["efforts"]["source"].startswith("https://")
    assert "what is documented" not in run("explain", "--model", "gpt-x", "--message", "hi").stdout


def test_what_the_model_refuses_is_dropped_with_the_source(run: Run) -> None:
    request = {"model": "careful", "temperature": 0.5, "messages": [{"role": "user", "content": "hi"}]}
    [change] = plan(run, stdin=json.dumps(request))["changes"]
    assert (change["action"], change["before"], change["weight"]) == ("dropped", "temperature", "loss")
    assert change["reason"] == "GPT-5 refuses it (tmc/langchaingo#1355)"


def test_text_of_wildcards_fallbacks_and_faults(run: Run) -> None:
    lines = run("explain", "--model", "gpt-x", "--message", "hi").stdout.splitlines()
    assert lines[0] == "model gpt-x, found by the pattern gpt-*"
    lines = run("explain", "--model", "fast", "--message", "hi").stdout.splitlines()
    assert lines[2:6] == [
        "1. lakehouse/llama (databricks): weight 3, 75% chance to be tried first, chosen",
        "2. foundry/Phi-4 (azure): weight 1, 25% chance to be tried first",
        "3. ascend/qwen3 (mindie): weight 0, tried if those before it fail",
        "4. openai/gpt-5 (openai): fallback careful, weight 1, tried if those before it fail",
    ]
    result = run("explain", "--model", "fest", "--message", "hi")
    assert result.exit_code == 1
    assert "error: the model 'fest' does not exist here; did you mean fast?" in result.stdout
    assert "  the client gets: status 404" in result.stdout


@pytest.mark.parametrize(
    ("args", "kind", "path"),
    [
        (("--model", "fast", "--key", "reports"), "model_not_found", "model"),
        (("--model", "odd"), "invalid_request", "model"),
        ((), "invalid_request", "model"),  # the openai dialect always names one
        (("--model", "fast", "--header", "extra-parameters: perhaps"), "invalid_request", "extra-parameters"),
        (("--from", "azure/chat", "--query", "api-version=1"), "invalid_request", "api-version"),
    ],
)
def test_faults(args: tuple[str, ...], kind: str, path: str, run: Run) -> None:
    told = plan(run, *args, code=1)
    assert (told["fault"]["kind"], told["fault"]["path"]) == (kind, path)
    assert told["call"] is None


def test_keys(run: Run) -> None:
    assert plan(run, "--model", "gpt-5", "--key", "reports")["entry"] == "gpt-*"
    assert plan(run, "--model", "fast", "--key", "ci")["entry"] == "fast"
    assert "there are: ci, reports" in run("explain", "--message", "x", "--key", "cj").stderr


@pytest.mark.parametrize("dialect", DIALECTS)
def test_client_dialects(dialect: str, run: Run) -> None:
    told = plan(run, "--from", f"{dialect}/chat", "--model", "careful")
    assert told["model"] == "careful"
    assert told["call"]["body"]["model"] == "gpt-5"


def test_default_model_where_the_dialect_has_one(run: Run) -> None:
    for dialect in ("azure", "databricks"):
        assert plan(run, "--from", f"{dialect}/chat")["entry"] == "fast"


def test_deployment_that_the_client_picks(run: Run) -> None:
    told = plan(run, "--from", "azure/chat", "--header", "azureml-model-deployment: blue")
    assert order(told) == [("foundry/Phi-4", 1.0)]
    assert told["call"]["headers"]["azureml-model-deployment"] == "blue"
    told = plan(run, "--from", "azure/chat", "--header", "azureml-model-deployment: green", code=1)
    assert told["fault"]["code"] == "deployment_not_found"


def test_the_served_profile_is_the_configured_one(run: Run, elsewhere: Path) -> None:
    body = '{"model": "gpt-5", "messages": [{"role": "user", "content": "x"}], "stream": true}'
    assert plan(run, "--from", "mindie/chat", stdin=body)["call"]["body"]["stream_options"] == {"include_usage": True}
    changed = CONFIG.replace("mindie: actual", "mindie: documented") + "policy: {stream_usage: leave}\n"
    (elsewhere / "dragoman.yaml").write_text(changed)
    assert "stream_options" not in plan(run, "--from", "mindie/chat", stdin=body)["call"]["body"]


async def test_what_is_explained_is_what_is_sent() -> None:
    """The real proxy sends the same to a fake, beside the id of the exchange and what HTTP needs."""
    async with FakeProvider("azure", api_key="sk-canary") as fake:
        config = Config.from_values(
            {
                "server": {"port": 0, "drain": {"delay": 0.001}},
                "providers": {"p": {"dialect": "azure", "base_url": fake.base_url, "api_key": "sk-canary"}},
                "models": {"m": {"targets": [{"provider": "p", "model": "up", "deployment": "blue"}]}},
            }
        )
        data = json.dumps({"model": "m", "messages": [{"role": "user", "content": "ü"}], "stop": "x"}).encode()
        told = await explain(config, ClientRequest(WireFormat.parse("--from", "openai/chat"), data))
        assert fake.requests == []
        await send(config, data)
        [received] = fake.requests
    assert told.request is not None
    assert told.request.url == f"{fake.base_url}{received.path}?api-version={received.query['api-version']}"
    assert told.request.body == received.raw
    extra = {"host", "content-length", "x-request-id"}
    sent = {name.lower(): value for name, value in received.headers.items() if name.lower() not in extra}
    assert {name.lower(): value for name, value in told.request.headers.items()} == sent


async def test_no_token_is_asked_for_and_no_key_of_a_file_shown(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("canary-key")
    oauth = {"token_url": "https://127.0.0.1:9/token", "client_id": "me", "client_secret": "canary-secret"}
    for credential in ({"oauth": oauth}, {"api_key_file": str(key)}):
        given = {"dialect": "azure", "base_url": "https://host/models", "auth": "bearer", **credential}
        config = Config.from_values(
            {"providers": {"p": {**given, "proxy": "http://me:canary@host:1"}}, "models": {"m": TARGETS}}
        )
        data = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
        told = await explain(config, ClientRequest(WireFormat.parse("--from", "openai/chat"), data))
        assert told.request is not None
        assert told.request.url.startswith("https://host/models/chat/completions")
        assert told.request.headers["Authorization"] == "Bearer ***"
        assert "canary" not in repr(told.request)


TARGETS = {"targets": [{"provider": "p"}]}
JSON = {"content-type": "application/json"}


async def send(config: Config, data: bytes) -> None:
    running = await start(config)
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{running.url}/v1/chat/completions", data=data, headers=JSON) as response,
        ):
            assert response.status == 200, await response.text()
    finally:
        await running.stop()
