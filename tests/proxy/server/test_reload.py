"""Reloading: a new configuration replaces the old one as a whole, for new requests, or not at all."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import weakref
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from random import Random

import aiohttp
import pytest

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.checked_config import CheckedConfig
from dragoman.proxy.config.problems import ConfigErrors, Problem

from .reloaded_proxy import Reloaded, ask, serve_file

KEY = "sk-client-of-the-proxy-0123456789"


def generation(number: int, **more: JsonValue) -> JsonObject:
    """A configuration in which everything that a request meets has this number."""
    provider = {
        "dialect": "openai",
        "base_url": "http://127.0.0.1:${PORT}/v1",
        "protocols": ["chat"],
        "api_key": f"sk-provider-{number}-0123456789",
        "headers": {"x-generation": f"g{number}"},
    }
    return {
        "server": {"port": 0, "drain": {"delay": "1ms"}},
        "store": {"kind": "none"},
        "keys": [{"name": f"g{number}", "key": KEY}],
        "providers": {"p": provider},
        "models": {"m": {"targets": [{"provider": "p", "model": f"g{number}"}]}},
        **more,
    }


def edited(config: JsonObject, path: str, value: JsonValue) -> JsonObject:
    """The configuration with another value at a path such as `providers.p.rate`."""
    changed = json.loads(json.dumps(config))
    *parents, last = path.split(".")
    place = changed
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return changed


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Reloaded]:
    async with serve_file(tmp_path, generation(0, server={"port": 0, "admin_port": 0})) as found:
        yield found


async def read_admin(served: Reloaded, path: str) -> str:
    assert served.proxy.admin is not None
    async with aiohttp.ClientSession() as session, session.get(served.proxy.admin.url + path) as response:
        return await response.text()


# What changes, and what stays


async def test_new_requests_get_the_new_configuration_and_running_ones_keep_theirs(served: Reloaded) -> None:
    served.provider.hold.clear()
    async with aiohttp.ClientSession(served.proxy.url) as session:
        running = asyncio.create_task(ask(session, KEY, stream=True))
        await served.provider.streaming.wait()
        assert await served.reload(generation(1))
        assert "bearer sk-provider-1-0123456789|g1|g1" not in served.log.getvalue().decode()
        status, text, _ = await ask(session, KEY)
        assert (status, json.loads(text)["choices"][0]["message"]["content"]) == (200, "bearer ***|g1|g1")
        assert not running.done()
        served.provider.hold.set()
        status, text, _ = await running
    assert (status, text) == (200, "bearer ***|g0|g0" + "." * 19)
    ended = {line["key"]: line["target"] for line in served.find("exchange")}
    assert ended == {"g1": "p/g1", "g0": "p/g0"}


async def test_the_log_says_what_has_changed_without_secrets(served: Reloaded) -> None:
    assert await served.reload(generation(1, server={"port": 0, "write_stall": "5s"}))
    (line,) = served.find("reloaded")
    assert line["changes"] == [
        "server.write_stall: 30.0 -> 5.0",
        "keys.g0: removed",
        "keys.g1: added",
        "providers.p.api_key: changed",
        "providers.p.headers.x-generation: changed",
        'models.m.targets[0].model: "g0" -> "g1"',
    ]
    assert b"sk-provider" not in served.log.getvalue()
    (restart,) = served.find("needs_restart")
    assert restart["settings"] == ["server.admin_port"]


async def test_what_only_a_restart_changes_is_named_and_stays(served: Reloaded, tmp_path: Path) -> None:
    config = generation(1, server={"port": 1, "host": "127.0.0.2", "admin_port": 0}, store={"kind": "memory"})
    assert await served.reload(config)
    (line,) = served.find("needs_restart")
    assert line["settings"] == ["server.host", "server.port", "store.kind"]
    assert (served.proxy.config.server.host, served.proxy.config.server.port) == ("127.0.0.1", 0)
    assert served.proxy.config.store.kind == "none"
    async with aiohttp.ClientSession(served.proxy.url) as session:
        assert (await ask(session, KEY))[0] == 200


KEPT = ["policy.unsupported", "providers.p.rate.requests_per_minute", "providers.p.profile", "models.m.balance"]
VALUES = {"policy.unsupported": "drop", "providers.p.rate.requests_per_minute": 5, "models.m.balance": "sticky"}


@pytest.mark.parametrize("path", KEPT)
async def test_connections_stay_if_nothing_about_them_changes(served: Reloaded, path: str) -> None:
    async with aiohttp.ClientSession(served.proxy.url) as session:
        await ask(session, KEY)
        assert await served.reload(edited(generation(0), path, VALUES.get(path, "documented")))
        await ask(session, KEY)
    assert served.provider.connections == 1


@pytest.mark.parametrize("path", ["providers.p.api_key", "providers.p.headers.x-other", "providers.p.timeouts.connect"])
async def test_connections_are_new_if_they_differ(served: Reloaded, path: str) -> None:
    async with aiohttp.ClientSession(served.proxy.url) as session:
        await ask(session, KEY)
        before = served.proxy.upstreams
        assert await served.reload(
            edited(generation(0), path, "2s" if path.endswith("connect") else "sk-other-0123456789")
        )
        assert before != served.proxy.upstreams
        await ask(session, KEY)
    assert served.provider.connections >= 2


async def test_counts_of_limits_outlive_a_reload(served: Reloaded) -> None:
    keys = [{"name": "a", "key": KEY, "rate": {"requests_per_minute": 2, "concurrency": 1}}]
    assert await served.reload(generation(0, keys=keys))
    served.provider.hold.clear()
    async with aiohttp.ClientSession(served.proxy.url) as session:
        running = asyncio.create_task(ask(session, KEY, stream=True))
        await served.provider.streaming.wait()
        assert await served.reload(generation(1, keys=keys))
        status, text, _ = await ask(session, KEY)
        assert (status, "the key a may have 1 requests at one time" in text) == (429, True)
        served.provider.hold.set()
        assert (await running)[0] == 200
        assert (await ask(session, KEY))[0] == 200
        status, text, _ = await ask(session, KEY)
        assert (status, "the key a may use 2 requests a minute" in text) == (429, True)


async def test_the_state_of_breakers_outlives_a_reload_of_the_same_provider(served: Reloaded) -> None:
    router = served.proxy._gateway.state
    health = router._healths.find("p", "g0")
    for _ in range(5):
        health.begin()
        health.end("failed")
    assert await served.reload(edited(generation(0), "policy.unsupported", "drop"))
    after = served.proxy._gateway.state._healths.find("p", "g0")
    assert (after.state, after is health) == ("open", True)
    assert await served.reload(edited(generation(0), "providers.p.api_key", "sk-another-0123456789"))
    assert served.proxy._gateway.state._healths.find("p", "g0").state == "closed"


async def test_targets_of_an_earlier_configuration_are_not_shown(served: Reloaded) -> None:
    """An alert about one that has been replaced would never end."""

    def list_names() -> set[tuple[str, str]]:
        return {name for name, _ in served.proxy._gateway.state.list_healths()}

    assert list_names() == {("p", "g0")}
    assert await served.reload(edited(generation(0), "models.m.targets", [{"provider": "p", "model": "another"}]))
    assert list_names() == {("p", "another")}
    assert await served.reload(edited(generation(0), "models", {"*": {"targets": [{"provider": "p"}]}}))
    async with aiohttp.ClientSession(served.proxy.url) as session:
        await ask(session, KEY, model="chosen")
    assert ("p", "chosen") in list_names()


async def test_limits_of_the_server_change(served: Reloaded) -> None:
    limits = {"in_flight": 1, "connections": 7, "large_requests": 3}
    assert await served.reload(generation(0, server={"port": 0, "limits": limits, "header_timeout": "3s"}))
    served.provider.hold.clear()
    async with aiohttp.ClientSession(served.proxy.url) as session:
        running = asyncio.create_task(ask(session, KEY, stream=True))
        await served.provider.streaming.wait()
        assert (await ask(session, KEY))[0] == 503
        served.provider.hold.set()
        assert (await running)[0] == 200
    server = served.proxy._server
    assert (server.most_connections, server._options["keepalive_timeout"]) == (7, 3.0)
    assert served.proxy._gateway.worker.most_waiting == 3


async def test_variables_and_files_are_read_again(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sk-first-0123456789\n")
    config = edited(generation(0), "providers.p.api_key", f"${{file:{secret}}}")
    config = edited(config, "models.m.targets", [{"provider": "p", "model": "${MODEL}"}])
    async with (
        serve_file(tmp_path, config, {"MODEL": "one"}) as served,
        aiohttp.ClientSession(served.proxy.url) as session,
    ):
        assert "|one" in (await ask(session, KEY))[1]
        secret.write_text("sk-second-0123456789\n")
        served.env["MODEL"] = "two"
        assert await served.reload(config)
        assert "|two" in (await ask(session, KEY))[1]
        assert served.find("reloaded")[0]["changes"] == [
            "providers.p.api_key: changed",
            'models.m.targets[0].model: "one" -> "two"',
        ]


async def test_a_provider_that_cannot_be_reached_is_only_a_warning(served: Reloaded) -> None:
    nobody = {"dialect": "openai", "base_url": "http://127.0.0.1:9/v1"}
    assert await served.reload(edited(generation(0), "providers.nobody", nobody))
    (line,) = await served.find_soon("provider_unreachable")
    assert line["provider"] == "nobody"
    assert "providers.nobody: added" in served.find("reloaded")[0]["changes"]


# What cannot be used


async def test_a_bad_file_changes_nothing_and_says_why(served: Reloaded) -> None:
    assert not await served.reload(edited(generation(1), "models.m.targets", [{"provider": "nobody"}]))
    (line,) = served.find("reload_failed")
    number = next(at for at, text in enumerate(served.file.read_text().splitlines(), 1) if "nobody" in text)
    assert line["problems"][0].startswith(f"{served.file}:{number}:")
    async with aiohttp.ClientSession(served.proxy.url) as session:
        assert "|g0|g0" in (await ask(session, KEY))[1]
    health = json.loads(await read_admin(served, "/health"))
    assert (health["status"], health["reload"]["outcome"]) == ("ok", "failed")
    assert health["reload"]["problem"] == line["problems"][0]
    metrics = await read_admin(served, "/metrics")
    assert 'dragoman_config_reloads_total{outcome="failed"} 1.0' in metrics
    assert "dragoman_config_last_reload_success 0.0" in metrics
    assert await served.reload(generation(1))
    metrics = await read_admin(served, "/metrics")
    assert 'dragoman_config_reloads_total{outcome="ok"} 1.0' in metrics
    assert "dragoman_config_last_reload_success 1.0" in metrics
    assert "problem" not in json.loads(await read_admin(served, "/health"))["reload"]


async def test_the_warnings_of_a_bad_file_are_logged_too(tmp_path: Path) -> None:
    problems = [Problem(".env", 1, 1, "bad-line", "", "this line is not NAME=value", severity="warning")]
    async with serve_file(tmp_path, generation(0)) as served:
        served.proxy.reloader._source = partial(raise_problems, problems)
        assert not await served.proxy.reloader.reload("a test")
        (line,) = served.find("reload_failed")
        assert line["problems"] == ["dragoman.yaml:2:1: no"]
        assert [line["message"] for line in served.find("configuration")] == [".env:1:1: this line is not NAME=value"]


def raise_problems(problems: list[Problem]) -> CheckedConfig:
    raise ConfigErrors([*problems, Problem("dragoman.yaml", 2, 1, "no", "", "no")])


async def test_a_reload_never_opens_the_proxy_to_strangers(tmp_path: Path) -> None:
    config = generation(0, server={"port": 0, "host": "0.0.0.0", "drain": {"delay": "1ms"}})
    async with serve_file(tmp_path, config) as served:
        assert not await served.reload({**generation(1), "keys": []})
        assert "refusing to listen on 0.0.0.0 without keys" in served.find("reload_failed")[0]["problems"][0]


async def test_secrets_of_a_state_that_is_being_built_stay_masked(served: Reloaded) -> None:
    gateway, secret = served.proxy._gateway, "sk-of-the-next-state-0123456789"
    with gateway.states.hold(gateway.states.current):
        assert await served.reload(generation(1))
        gateway.states.expect_secrets([secret])
    assert gateway._mask(secret.encode()) == b"***"
    gateway.states.expect_secrets()
    assert gateway._mask(secret.encode()) == secret.encode()


async def test_a_file_that_is_written_in_part_takes_no_key_away(tmp_path: Path) -> None:
    config = generation(0, server={"port": 0, "admin_port": 0, "admin_key": f"{KEY}-admin", "drain": {"delay": "1ms"}})
    async with serve_file(tmp_path, config) as served:
        assert not await served.reload({name: value for name, value in config.items() if name != "keys"})
        server = {name: value for name, value in config["server"].items() if name != "admin_key"}
        assert not await served.reload({**config, "server": server})
        problems = [line["problems"][0] for line in served.find("reload_failed")]
        assert [problem.partition(":")[0] for problem in problems] == ["keys", "server.admin_key"]
        async with aiohttp.ClientSession(served.proxy.url) as session:
            assert (await ask(session))[0] == 401


async def test_files_that_cannot_be_read_change_nothing(served: Reloaded, tmp_path: Path) -> None:
    tls = {"ca": str(tmp_path / "ca.pem")}
    (tmp_path / "ca.pem").write_text("nonsense")
    assert not await served.reload(edited(generation(1), "providers.p.tls", tls))
    served.file.unlink()
    assert not await served.proxy.reloader.reload("a test")
    async with aiohttp.ClientSession(served.proxy.url) as session:
        assert "|g0|g0" in (await ask(session, KEY))[1]


def break_text(text: str, random: Random) -> str:
    """The text, cut or with a damaged line."""
    lines = text.splitlines()
    place = random.randrange(1, len(lines))
    damages: list[Callable[[], list[str]]] = [
        lambda: lines[:place],
        lambda: [*lines[:place], "  : [", *lines[place:]],
        lambda: [*lines[:place], "\x00", *lines[place:]],
        lambda: [*lines[:place], '"unknown_setting": 1,', *lines[place:]],
    ]
    return "\n".join(random.choice(damages)())


WRONG: list[JsonValue] = [
    None,
    True,
    -1,
    "nonsense",
    [],
    [[]],
    {"unknown": 1},
    "${UNSET}",
    "${file:/no/such/file}",
    1e309,
]
PLACES = [
    ("providers", "p"),
    ("providers", "p", "dialect"),
    ("providers", "p", "base_url"),
    ("providers", "p", "pool"),
    ("providers", "p", "tls"),
    ("models", "m"),
    ("models", "m", "targets"),
    ("models", "m", "targets", 0),
    ("models", "m", "targets", 0, "provider"),
    ("keys", 0),
    ("keys", 0, "rate"),
    ("server",),
    ("server", "drain"),
    ("store",),
]


def list_broken_files(count: int) -> list[str]:
    """Texts that are no valid configuration: truncated, damaged, with wrong types, with unknown providers."""
    random, good = Random(7), json.dumps(generation(1), indent=1)
    damaged = (break_text(good, random) for _ in itertools.count())
    wrong = (
        json.dumps(put(json.loads(good), place, value), indent=1)
        for place, value in itertools.product(PLACES, WRONG)
        if value is not None and not (value == [] and place[-1] in ("pool", "tls", "server", "drain", "store"))
    )
    return [text for pair in zip(wrong, damaged, strict=False) for text in pair][:count]


def put(config: JsonObject, place: tuple[str | int, ...], value: JsonValue) -> JsonObject:
    found: JsonValue = config
    for part in place[:-1]:
        found = found[part]
    found[place[-1]] = value
    return config


async def test_200_broken_files_leave_the_old_state(served: Reloaded) -> None:
    state = served.proxy._gateway.states.current
    texts = list_broken_files(200)
    assert len(texts) == 200
    async with aiohttp.ClientSession(served.proxy.url) as session:
        for number, text in enumerate(texts):
            served.file.write_text(text)
            assert not await served.proxy.reloader.reload("a test"), text
            assert served.proxy._gateway.states.current is state
            if number % 20 == 0:
                assert "|g0|g0" in (await ask(session, KEY))[1]
        assert "|g0|g0" in (await ask(session, KEY))[1]
    assert len(served.find("reload_failed")) == 200
    assert not served.find("defect")
    assert all(line["problems"] for line in served.find("reload_failed"))


# Under load


async def reload_under_load(served: Reloaded, count: int) -> None:
    """Clients ask without a pause, whole and as streams, while the configuration is reloaded so many times."""
    answers: list[tuple[int, str, str]] = []
    is_done = False

    async def ask_on(session: aiohttp.ClientSession, stream: bool) -> None:
        while not is_done:
            answers.append(await ask(session, KEY, stream=stream))

    async with aiohttp.ClientSession(served.proxy.url) as session:
        clients = [asyncio.create_task(ask_on(session, number % 2 == 0)) for number in range(8)]
        for number in range(1, count + 1):
            assert await served.reload(generation(number))
            await asyncio.sleep(0)
        is_done = True
        await asyncio.gather(*clients)
    lines = {line["request_id"]: line for line in served.find("exchange")}
    assert len(answers) == len(lines) >= count / 2
    for status, text, request_id in answers:
        content = text if text.endswith(".") else json.loads(text)["choices"][0]["message"]["content"]
        line = lines[request_id]
        assert (status, line["outcome"]) == (200, "ok")
        _, header, model = content.rstrip(".").split("|")
        assert {header, model, line["key"], line["target"].removeprefix("p/")} == {header}
    assert not served.find("defect")
    assert served.proxy._gateway.states.earlier_count == 0


async def test_reloads_under_load(served: Reloaded) -> None:
    await reload_under_load(served, 25)


@pytest.mark.heavy
async def test_a_thousand_reloads_under_load(served: Reloaded) -> None:
    await reload_under_load(served, 1000)


async def test_an_earlier_state_is_freed_after_its_last_request(served: Reloaded) -> None:
    assert await served.reload(generation(1))
    served.provider.hold.clear()
    async with aiohttp.ClientSession(served.proxy.url) as session:
        running = asyncio.create_task(ask(session, KEY, stream=True))
        await served.provider.streaming.wait()
        router, upstream = (weakref.ref(one) for one in (served.proxy._gateway.state, served.proxy.upstreams[0]))
        for number in range(2, 5):
            assert await served.reload(generation(number))
        assert router() is not None
        assert served.proxy._gateway.states.earlier_count == 1
        served.provider.hold.set()
        assert (await running)[0] == 200
    for _ in range(100):
        if upstream() is None and router() is None:
            break
        await asyncio.sleep(0.01)
        gc.collect()
    assert (router(), upstream()) == (None, None)
    assert served.proxy._gateway.states.earlier_count == 0


# When it happens


async def test_a_changed_file_is_read_if_it_is_watched(tmp_path: Path) -> None:
    watched = {"port": 0, "reload": "watch", "drain": {"delay": "1ms"}}
    async with serve_file(tmp_path, generation(0, server=watched)) as served:
        await asyncio.sleep(0.3)
        served.write(generation(1, server=watched))
        (line,) = await served.find_soon("reloaded")
        assert line["cause"] == "dragoman.yaml changed"
        served.file.write_text("nonsense: [")
        await served.find_soon("reload_failed")
        served.write(generation(2, server={"port": 0}))
        await served.find_soon("reloaded", 2)
        async with aiohttp.ClientSession(served.proxy.url) as session:
            assert "|g2|g2" in (await ask(session, KEY))[1]


async def test_files_that_a_bad_file_names_are_watched_too(tmp_path: Path) -> None:
    """A secret may come after the configuration that needs it."""
    watched = {"port": 0, "reload": "watch", "drain": {"delay": "1ms"}}
    async with serve_file(tmp_path, generation(0, server=watched)) as served:
        await asyncio.sleep(0.3)
        changed = edited(generation(1, server=watched), "providers.p.api_key", "${file:late}")
        served.write(changed)
        await served.find_soon("reload_failed")
        (tmp_path / "late").write_text("sk-late-0123456789")
        assert (await served.find_soon("reloaded"))[0]["cause"] == "late changed"
        served.write(edited(changed, "providers.p.tls", {"ca": "ca.pem"}))
        await served.find_soon("reload_failed", 2)
        (tmp_path / "ca.pem").write_text("no certificate")
        assert (await served.find_soon("reload_failed", 3))[2]["cause"] == "ca.pem changed"


async def test_requests_by_signal(served: Reloaded) -> None:
    served.write(generation(1))
    served.proxy.reloader.request("SIGHUP")
    await served.find_soon("reloaded")
    served.write(generation(2, server={"port": 0, "reload": "off"}))
    served.proxy.reloader.request("SIGHUP")
    await served.find_soon("reloaded", 2)
    served.proxy.reloader.request("SIGHUP")
    (line,) = await served.find_soon("signal_ignored")
    assert line["message"] == "server.reload is off; restart dragoman to apply changes"
