"""The admin listener: metrics and health, who may see them, and what they say of exchanges."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.server import admin
from dragoman.proxy.server.lifecycle import StartError, start
from dragoman.proxy.telemetry.exposition import Gauge, write_exposition
from dragoman.proxy.telemetry.metrics import MetricsSnapshot
from dragoman.proxy.upstreams.supervision.upstream import SupervisedUpstream
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
KEY = "admin-key-0123456789"


async def fetch(p: Proxy, path: str = "/metrics", **headers: str) -> tuple[int, str, str]:
    """The status, the content type and the text at a path of the admin listener."""
    assert p.running.admin is not None
    async with aiohttp.ClientSession() as session, session.get(p.running.admin.url + path, headers=headers) as answer:
        return answer.status, answer.headers.get("content-type", ""), await answer.text()


async def read_samples(p: Proxy) -> dict[str, dict[str, float]]:
    """The values by name, and by the values of their labels, joined by spaces."""
    _, _, text = await fetch(p)
    found: dict[str, dict[str, float]] = {}
    for family in parse_text(text):
        for sample in family.samples:
            labels = " ".join(value for name, value in sample.labels.items() if name != "le")
            if not sample.name.endswith("_bucket"):
                found.setdefault(sample.name, {})[labels] = sample.value
    return found


async def test_requests_that_the_proxy_refuses_are_counted(proxy: StartProxy, upstream: StartUpstream) -> None:
    """The alert about overload looks for them. What clients do wrong without reaching an exchange does not count."""
    up = await upstream("hang")
    p = await proxy(up, server={"admin_port": 0, "limits": {"in_flight": 1}})
    running = asyncio.create_task(p.ask())
    for _ in range(500):
        if up.requests:
            break
        await asyncio.sleep(0.01)
    assert (await p.ask()).status == 503
    async with p.session.post(f"{p.running.url}/nothing") as answer:
        assert answer.status == 404
    found = await read_samples(p)
    assert {" ".join(labels.split()) for labels in found["dragoman_requests_total"]} == {"openai fault chat 503"}
    assert {" ".join(labels.split()) for labels in found["dragoman_faults_total"]} == {"overloaded overloaded proxy"}
    running.cancel()
    await asyncio.wait([running])


async def test_metrics_are_written_in_a_thread_from_numbers_of_one_moment(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of series take a quarter of a second, in which streams would stand still."""
    p = await proxy(await upstream(wire.ok), server={"admin_port": 0})
    loop, threads = asyncio.get_running_loop(), []

    def write(metrics: MetricsSnapshot, gauges: Sequence[Gauge], accept: str) -> tuple[bytes, str]:
        threads.append(threading.current_thread())
        asyncio.run_coroutine_threadsafe(ask_and_wait(p), loop).result()
        return write_exposition(metrics, gauges, accept)

    monkeypatch.setattr(admin, "write_exposition", write)
    assert "dragoman_requests_total" not in await read_samples(p)
    assert (await read_samples(p))["dragoman_request_seconds_count"] == {"chat p0/up": 1.0}
    assert threading.main_thread() not in threads


async def ask_and_wait(p: Proxy) -> None:
    await p.ask()
    await p.exchanges(1)


async def test_exchanges_are_counted(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok)
    p = await proxy(up, server={"admin_port": 0})
    assert (await p.ask(user="u", seed=None)).status == 200
    up.script = [wire.stream]
    assert (await p.ask(stream=True)).events[-1] == "[DONE]"
    assert (await p.ask(model="unknown")).status == 404
    found = await read_samples(p)
    requests = found["dragoman_requests_total"]
    assert sum(count for labels, count in requests.items() if {"ok", "200"} <= set(labels.split())) == 2
    assert [labels for labels in requests if "fault" in labels and "404" in labels]
    assert any({"client", "model_not_found"} <= set(labels.split()) for labels in found["dragoman_faults_total"])
    assert sum(found["dragoman_request_seconds_count"].values()) == 2
    assert sum(found["dragoman_first_token_seconds_count"].values()) == 1
    assert found["dragoman_requests_in_flight"] == {"": 0.0}
    assert sum(found["dragoman_target_state"].values()) >= 1
    assert found["process_resident_memory_bytes"][""] > 1_000_000


@pytest.mark.parametrize(("accept", "parse"), [("", parse_text), (OPENMETRICS, parse_openmetrics)])
async def test_both_formats_can_be_parsed(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, accept: str, parse: type
) -> None:
    p = await proxy(await upstream(wire.ok), server={"admin_port": 0})
    await p.ask(user="u")
    status, content_type, text = await fetch(p, accept=accept)
    assert status == 200
    assert content_type.startswith(accept.partition(";")[0] or "text/plain")
    families = {family.name for family in parse(text)}
    assert {"dragoman_requests", "dragoman_request_seconds", "dragoman_loop_lag_seconds"} <= families


def check_metrics(text: str) -> str:
    """What promtool says against it."""
    run = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    return run.stdout + run.stderr + f"status {run.returncode}" * bool(run.returncode)


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="there is no promtool here (Debian: apt-get install prometheus)"
)
async def test_promtool_accepts_the_metrics_after_exchanges_of_all_kinds(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.ok)
    key = {"name": "k", "key": KEY, "budget": {"tokens_per_day": 1000}, "rate": {"requests_per_minute": 60}}
    p = await proxy(up, server={"admin_port": 0}, keys=[key])
    given = {"authorization": f"Bearer {KEY}"}
    up.script = [wire.ok, wire.stream]
    answers = [
        await p.ask(headers=given, user="u"),
        await p.ask(headers=given, stream=True),
        await p.ask(headers=given, model='no "model"\n'),
        await p.ask(),
    ]
    assert [answer.status for answer in answers] == [200, 200, 404, 401]
    _, _, text = await fetch(p)
    assert check_metrics(text) == ""


async def test_names_that_clients_choose_make_a_limited_number_of_series(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.proxy.telemetry.metrics._MOST_SERIES", 5)
    models = {"x-*": {"targets": [{"provider": "p0"}]}}
    p = await proxy(await upstream(wire.ok), server={"admin_port": 0}, models=models)
    for number in range(20):
        await p.ask(model=f"x-{number}")
    requests = (await read_samples(p))["dragoman_requests_total"]
    assert len(requests) == 6
    assert requests["other other other other other other"] == 15


async def test_models_that_do_not_exist_make_one_series(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    p = await proxy(await upstream(wire.ok), server={"admin_port": 0})
    for number in range(20):
        await p.ask(model=f"none-{number}")
    requests = (await read_samples(p))["dragoman_requests_total"]
    assert [count for labels, count in requests.items() if "404" in labels.split()] == [20]


async def test_health_names_the_version_and_the_configuration(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    p = await proxy(await upstream(wire.ok), server={"admin_port": 0})
    _, _, text = await fetch(p, "/health")
    async with p.session.get(f"{p.running.url}/health") as answer:
        shown = await answer.json()
    found = json.loads(text)
    assert found.pop("reload")["outcome"] == "ok"
    assert found == shown
    assert '"status":"ok"' in text
    assert '"version":"' in text


async def test_with_a_key_nothing_is_shown_without_it(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    p = await proxy(await upstream(wire.ok), server={"admin_port": 0, "admin_key": KEY})
    assert (await fetch(p))[0] == 401
    assert (await fetch(p, "/health"))[0] == 401
    assert (await fetch(p, authorization="Bearer other"))[0] == 401
    assert (await fetch(p, "/live"))[0] == 200
    assert (await fetch(p, authorization=f"Bearer {KEY}"))[0] == 200


async def test_a_page_of_another_site_sees_nothing(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    p = await proxy(await upstream(wire.ok), server={"admin_port": 0})
    assert (await fetch(p, host="evil.example"))[0] == 403
    assert (await fetch(p, origin="https://evil.example"))[0] == 403


async def test_other_addresses_and_methods_are_refused(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    p = await proxy(await upstream(wire.ok), server={"admin_port": 0})
    status, _, text = await fetch(p, "/v1/models")
    assert (status, "/metrics" in text) == (404, True)
    assert p.running.admin is not None
    async with aiohttp.ClientSession() as session, session.post(f"{p.running.admin.url}/metrics") as answer:
        assert answer.status == 405


async def test_clients_of_the_proxy_do_not_reach_the_metrics(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    p = await proxy(await upstream(wire.ok), server={"admin_port": 0})
    async with p.session.get(f"{p.running.url}/metrics") as answer:
        assert answer.status == 404


async def test_other_machines_are_not_served_without_a_key(tmp_path: Path) -> None:
    config = Config.from_values(
        {
            "server": {"port": 0, "admin_port": 0, "admin_host": "0.0.0.0"},
            "store": {"kind": "none"},
            "providers": {"a": {"dialect": "openai", "base_url": "http://127.0.0.1:9/v1"}},
            "models": {"m": {"targets": [{"provider": "a", "model": "m"}]}},
        }
    )
    with pytest.raises(StartError, match=r"server\.admin_key"):
        await start(config)


async def test_limits_and_what_is_left_of_them(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    rate = {"requests_per_minute": 10, "concurrency": 3, "burst": 4}
    up: JsonObject = {"base_url": f"http://127.0.0.1:{(await upstream(wire.ok)).port}/v1", "rate": rate}
    keys = [{"name": "ci", "key": "sk-of-a-client", "rate": {"tokens_per_minute": 100}}]
    p = await proxy(up, server={"admin_port": 0}, keys=keys)
    await p.ask(headers={"api-key": "sk-of-a-client"})
    await p.exchanges()
    found = await read_samples(p)
    assert found["dragoman_limit"] == {
        "concurrency p0 provider": 3.0,
        "requests_per_minute p0 provider": 10.0,
        "tokens_per_minute ci key": 100.0,
    }
    assert found["dragoman_limit_burst"] == {
        "concurrency p0 provider": 3.0,
        "requests_per_minute p0 provider": 4.0,
        "tokens_per_minute ci key": 100.0,
    }
    left = found["dragoman_limit_remaining"]
    assert left["requests_per_minute p0 provider"] == 3.0
    assert left["tokens_per_minute ci key"] == 97.0


async def test_engines_say_how_many_slots_they_have(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    p = await proxy(await upstream(wire.ok), server={"admin_port": 0})
    engine = SupervisedUpstream.__new__(SupervisedUpstream)
    engine.engine = SimpleNamespace(statistics={"slots": 16, "running": 3, "waiting": 0})  # type: ignore[assignment]
    router = p.running._gateway.state
    with pytest.MonkeyPatch.context() as patch:
        providers = [replace(one, upstream=engine) for one in router.providers]
        patch.setattr(type(router), "providers", providers)
        found = await read_samples(p)
    counts = [found[f"dragoman_engine_{name}"] for name in ("slots", "running", "waiting")]
    assert counts == [{"p0": 16.0}, {"p0": 3.0}, {"p0": 0.0}]


async def test_tokens_of_a_cache_are_part_of_the_input(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    usage = {**wire.reply["usage"], "prompt_tokens_details": {"cached_tokens": 1}}
    up = await upstream(wire.http(json.dumps({**wire.reply, "usage": usage}).encode()))
    p = await proxy(up, server={"admin_port": 0})
    await p.ask()
    await p.exchanges()
    found = await read_samples(p)
    assert found["dragoman_tokens_total"] == {"input m p0/up": 1.0, "output m p0/up": 2.0}
    assert found["dragoman_cached_tokens_total"] == {"m p0/up": 1.0}
