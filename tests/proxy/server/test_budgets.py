"""Budgets of keys over sockets: refusals in each dialect, and what a restart and a reload keep."""

from __future__ import annotations

import json
from pathlib import Path

import aiohttp
import pytest
from typer.testing import CliRunner

from dragoman.contract.json_types import JsonObject
from dragoman.proxy.cli.main import app

from .reloaded_proxy import Reloaded, ask, serve_file

KEY = "sk-client-of-the-proxy-0123456789"


def configure(folder: Path, **budget: float) -> JsonObject:
    provider = {"dialect": "openai", "base_url": "http://127.0.0.1:${PORT}/v1", "protocols": ["chat"]}
    target = {"provider": "p", "model": "up", "price": {"input": 1.0, "output": 2.0}}
    return {
        "server": {"port": 0, "admin_port": 0, "drain": {"delay": "1ms"}},
        "store": {"path": str(folder / "responses.db")},
        "keys": [{"name": "a", "key": KEY, "budget": budget}, {"name": "b", "key": f"{KEY}-b"}],
        "providers": {"p": provider},
        "models": {"m": {"targets": [target]}},
    }


async def ask_twice(served: Reloaded) -> tuple[int, int]:
    async with aiohttp.ClientSession(served.proxy.url) as session:
        return (await ask(session, KEY))[0], (await ask(session, KEY, stream=True))[0]


REFUSALS = {
    "/v1/chat/completions": (429, "error", "code", "insufficient_quota"),
    "/v1/responses": (429, "error", "code", "insufficient_quota"),
    "/v1/messages": (402, "error", "type", "billing_error"),
    "/serving-endpoints/m/invocations": (429, "error_code", None, "REQUEST_LIMIT_EXCEEDED"),
}


async def test_a_used_up_budget_is_refused_in_each_dialect(tmp_path: Path) -> None:
    async with serve_file(tmp_path, configure(tmp_path, tokens_per_day=15)) as served:
        assert await ask_twice(served) == (200, 429)
        async with aiohttp.ClientSession(served.proxy.url) as session:
            for path, (status, name, part, value) in REFUSALS.items():
                body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
                if path.endswith("responses"):
                    body = {"model": "m", "input": "hi"}
                headers = {"Authorization": f"Bearer {KEY}", "anthropic-version": "2023-06-01"}
                async with session.post(path, json=body, headers=headers) as response:
                    found = await response.json()
                    assert response.status == status, path
                    assert 0 < float(response.headers["retry-after"]) <= 86400
                    shown = found[name] if part is None else found[name][part]
                    assert shown == value, path
                    assert "the key a has used up its 15 tokens a day; the next day begins at" in json.dumps(found)
            assert (await ask(session, f"{KEY}-b"))[0] == 200


@pytest.mark.parametrize("budget", [{"tokens_per_month": 15}, {"cost_per_month": 0.00002}])
async def test_a_restart_and_a_reload_forget_nothing(tmp_path: Path, budget: dict[str, float]) -> None:
    config = configure(tmp_path, **budget)
    async with serve_file(tmp_path, config) as served:
        async with aiohttp.ClientSession(served.proxy.url) as session:
            assert (await ask(session, KEY))[0] == 200
        (line,) = served.find("exchange")
        assert line["cost"] == pytest.approx((10 * 1 + 5 * 2) / 1e6)
        assert await served.reload({**config, "policy": {"unsupported": "drop"}})
        assert await ask_twice(served) == (429, 429)
    async with serve_file(tmp_path, config) as served:
        assert await ask_twice(served) == (429, 429)
        assert await served.reload(configure(tmp_path, tokens_per_month=1000))
        assert (await ask_twice(served))[0] == 200


async def test_who_leaves_before_the_usage_has_used_something_too(tmp_path: Path) -> None:
    async with serve_file(tmp_path, configure(tmp_path, tokens_per_day=30)) as served:
        served.provider.hold.clear()
        async with aiohttp.ClientSession(served.proxy.url) as session:
            payload = {"model": "m", "messages": [{"role": "user", "content": "x" * 80}], "stream": True}
            answer = await session.post(
                "/v1/chat/completions", json=payload, headers={"Authorization": f"Bearer {KEY}"}
            )
            await served.provider.streaming.wait()
            answer.close()
            (line,) = await served.find_soon("exchange")
            assert (line["outcome"], line["tokens_in"]) == ("client_left", len(json.dumps(payload)) // 4 + 1)
            assert line["tokens_out"] == line["events"] > 0
            assert line["cost"] > 0
            assert (await ask(session, KEY))[0] == 429


async def test_usage_is_shown_by_the_command_and_the_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with serve_file(tmp_path, configure(tmp_path, tokens_per_day=1000)) as served:
        async with aiohttp.ClientSession(served.proxy.url) as session:
            await ask(session, KEY)
            await ask(session, KEY)
            await ask(session, f"{KEY}-b")
        assert served.proxy.admin is not None
        async with aiohttp.ClientSession() as session, session.get(f"{served.proxy.admin.url}/metrics") as response:
            metrics = await response.text()
        assert 'dragoman_key_budget{key="a",period="day",unit="tokens"} 1000.0' in metrics
        cost = metrics.partition('dragoman_cost_total{model="m",target="p/up"} ')[2]
        assert float(cost.split("\n")[0]) == pytest.approx(0.00006)
        assert 'dragoman_key_budget_used{key="a",period="day",unit="tokens"} 30.0' in metrics
    env = {"PORT": "1"}
    shown = CliRunner().invoke(app, ["usage", "--json"], env=env)
    counts = {
        "model": "m",
        "input_tokens": 20,
        "output_tokens": 10,
        "cached_tokens": 0,
        "requests": 2,
        "attempts": 2,
        "cost": 0.00004,
    }
    assert json.loads(shown.stdout)[0] == {"key": "a", **counts}
    shown = CliRunner().invoke(app, ["usage", "--by", "target", "--csv", "--since", "2020-01-01"], env=env)
    assert shown.stdout.splitlines()[1] == "p/up,3,3,30,15,0,6e-05"
    shown = CliRunner().invoke(app, ["usage", "--store", "responses.db", "--by", "key"])
    assert [line.split() for line in shown.stdout.splitlines()][1:] == [
        ["a", "2", "2", "20", "10", "0", "4e-05"],
        ["b", "1", "1", "10", "5", "0", "2e-05"],
    ]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--by", "color"], "--by: 'color' is none of day, key, model, target"),
        (["--since", "yesterday"], "--since: 'yesterday' is not a day such as 2027-01-31"),
        (["--store", "nothing.db"], "there is no store nothing.db: no proxy has used it yet"),
    ],
)
def test_what_the_command_cannot_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["usage", *args])
    assert (result.exit_code, message in result.output) == (2, True)
