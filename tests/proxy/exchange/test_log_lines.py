"""What the log says of an exchange: how severe it was, and what else people look for."""

from __future__ import annotations

import pytest

from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire


@pytest.mark.parametrize(
    ("reply", "level"),
    [
        ("500 Internal Server Error", "warning"),
        ("503 Service Unavailable", "warning"),
        ("429 Too Many Requests", "warning"),
        ("400 Bad Request", "info"),
    ],
)
async def test_failures_of_a_provider_are_warnings(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, reply: str, level: str
) -> None:
    p = await proxy(await upstream(wire.http(b'{"error": {"message": "no"}}', status=reply)), retries={"attempts": 1})
    await p.ask()
    (line,) = await p.exchanges()
    assert (line["outcome"], line["level"]) == ("fault", level)


async def test_a_broken_stream_is_a_warning(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    p = await proxy(await upstream(*wire.chunked(wire.token("he"), end=False)))
    assert (await p.ask(stream=True)).status == 200
    (line,) = await p.exchanges()
    assert (line["outcome"], line["level"], line["status"]) == ("fault", "warning", 200)


async def test_a_defect_of_the_proxy_is_an_error(proxy: StartProxy) -> None:
    p = await proxy()
    await p.ask(broken=True)
    assert [line["level"] for line in await p.exchanges()] == ["error"]


async def test_what_clients_do_wrong_is_information(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    keys = [{"name": "ci", "key": "sk-canary-mine", "rate": {"requests_per_minute": 1}}]
    p = await proxy(await upstream(wire.ok, "keep"), keys=keys)
    assert (await p.ask()).status == 401
    for status in (200, 429):
        assert (await p.ask(headers={"api-key": "sk-canary-mine"})).status == status
    assert [line["level"] for line in await p.exchanges(3)] == ["info"] * 3


async def test_an_unknown_address_is_in_the_log(proxy: StartProxy) -> None:
    p = await proxy()
    async with p.session.post(f"{p.running.url}/v1/nothing?api-key=sk-canary", json={}) as answer:
        assert answer.status == 404
    (line,) = p.lines
    assert (line["event"], line["level"], line["method"]) == ("refused", "info", "POST")
    assert (line["path"], line["client"], line["status"]) == ("/v1/nothing", "127.0.0.1", 404)
    assert line["message"]
    assert b"canary" not in p.log.getvalue()


async def test_whole_answers_and_streams_have_the_same_headers(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.ok)
    p = await proxy(up, server={"target_header": True})
    whole = await p.ask()
    up.script = [wire.stream]
    stream = await p.ask(stream=True)
    for name in ("Server", "x-dragoman-target"):
        assert whole.headers[name] == stream.headers[name]
    assert (whole.headers["Server"], whole.headers["x-dragoman-target"]) == ("dragoman", "p0/up")


async def test_targets_are_named_only_if_the_configuration_says_so(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    answer = await (await proxy(await upstream(wire.ok))).ask()
    assert "x-dragoman-target" not in answer.headers


async def test_names_of_models_are_encoded_in_headers(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    models = {"m": {"targets": [{"provider": "p0", "model": "größe 1"}]}}
    p = await proxy(await upstream(wire.ok), server={"target_header": True}, models=models)
    answer = await p.ask()
    assert answer.headers["x-dragoman-target"] == "p0/gr%C3%B6%C3%9Fe%201"
