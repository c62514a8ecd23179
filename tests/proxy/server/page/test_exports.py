"""Exports of exchanges: each is used for what it is for."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import aiohttp
import pytest

from dragoman.contract.fakes import ReplayProvider
from dragoman.contract.json_types import JsonObject
from dragoman.contract.recordings import hash_request
from dragoman.proxy.server.lifecycle import RunningProxy
from tests.ports import find_free_port
from tests.proxy.page_rig import run_page_rig

from .page_client import PageClient

JSON = {"Content-Type": "application/json"}
HELLO = [{"role": "user", "content": "hello, it's ${me}\n`date`"}]


async def ask(session: aiohttp.ClientSession, rig: RunningProxy, path: str, body: JsonObject, **headers: str) -> int:
    async with session.post(rig.url + path, json=body, headers=headers) as answer:
        await answer.read()
        return answer.status


async def export(page: PageClient, form: str) -> str:
    (latest, *_) = await page.list_ended()
    status, text = await page.get(f"/page/api/exchanges/{latest['id']}/export?as={form}")
    assert status == 200, text
    return text


async def run(*command: str, **environment: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=environment or None
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def test_the_command_sends_the_same_request(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    body = {"model": "to-openai", "messages": HELLO}
    headers = {"Authorization": "Bearer sk-of-the-client-0123456789", "X`id`": "1", "X-Extra": "$(id)'\""}
    await ask(session, rig, "/v1/chat/completions?a=$HOME", body, **headers)
    text = await export(page, "curl")
    assert "of-the-client" not in text
    assert '"Authorization: Bearer $DRAGOMAN_KEY"' in text
    assert "`id`" not in text
    status, output = await run("sh", "-c", text, PATH="/usr/bin:/bin", DRAGOMAN_KEY="sk-another-key-0123456789")
    assert status == 0
    assert json.loads(output)["choices"]
    latest = await page.read_latest()
    assert latest["seq"] == 2
    assert json.loads(latest["client"]["request"]["body"]) == body
    assert latest["path"] == "/v1/chat/completions?a=$HOME"
    assert dict(latest["client"]["request"]["headers"])["X-Extra"] == "$(id)'\""


async def test_the_command_sends_a_key_and_files_to_nobody_else(session: aiohttp.ClientSession) -> None:
    async with run_page_rig(
        keys=[{"name": "a", "key": "sk-of-the-client-0123456789"}], server={"admin_port": 0}
    ) as rig:
        headers = {"Host": "evil.test", "Authorization": "Bearer sk-of-the-client-0123456789"}
        headers["Content-Type"] = "application/json"
        async with session.post(f"{rig.url}/v1/chat/completions", data="@/etc/hostname", headers=headers) as answer:
            assert answer.status == 400
        assert rig.admin is not None
        text = await export(PageClient(session, rig.admin.url), "curl")
    assert "evil" not in text
    assert "http://localhost:" in text
    assert "--data-raw @/etc/hostname" in text


async def test_the_command_sends_a_long_request(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """No argument of a command is that long."""
    body = {"model": "to-openai", "messages": [{"role": "user", "content": "it's `date` END $HOME " * 8_000}]}
    await ask(session, rig, "/v1/chat/completions", body)
    (tmp_path / "command.sh").write_text(await export(page, "curl"))
    status, output = await run("sh", str(tmp_path / "command.sh"), PATH="/usr/bin:/bin")
    assert status == 0, output
    latest = await page.read_latest()
    assert (latest["seq"], latest["status"]) == (2, 200)
    assert json.loads(latest["client"]["request"]["body"]) == body


async def test_a_body_that_is_no_text_cannot_be_exported(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    async with session.post(
        f"{rig.url}/v1/chat/completions", data=b'{"model": "\xff", "n": 1}', headers=JSON
    ) as answer:
        assert answer.status == 400
    (latest, *_) = await page.list_ended()
    status, text = await page.get(f"/page/api/exchanges/{latest['id']}/export?as=curl")
    assert (status, json.loads(text)["error"]) == (400, "the request's body is not UTF-8 text")


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_fake_plays_the_recording(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession, tmp_path: Path, is_stream: bool
) -> None:
    await ask(session, rig, "/v1/chat/completions", {"model": "to-openai", "messages": HELLO, "stream": is_stream})
    (tmp_path / "take.json").write_text(text := await export(page, "recording"))
    recording = json.loads(text)
    found = (await page.read_latest())["tries"][0]["reply"]
    expected = "".join(one["text"] for one in found["events"]) if is_stream else found["body"]
    request = recording["request"]
    latest = (await page.list_ended())[0]["id"]
    async with session.get(f"{rig.url}/page/api/exchanges/{latest}/export?as=recording") as answer:
        name = answer.headers["Content-Disposition"].partition('filename="')[2].rstrip('"')
    (tmp_path / "take.json").rename(tmp_path / name)
    async with ReplayProvider(tmp_path, timed=False) as fake:
        url = fake.origin + request["path"]
        async with session.post(url, data=request["body"], headers={"Content-Type": "application/json"}) as answer:
            assert (answer.status, await answer.text()) == (200, expected)


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_fake_cuts_what_was_cut(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession, tmp_path: Path, is_stream: bool
) -> None:
    cut = [{"role": "user", "content": "fake:cut"}]
    await ask(session, rig, "/v1/chat/completions", {"model": "to-openai", "messages": cut, "stream": is_stream})
    recording = json.loads(await export(page, "recording"))
    request = recording["request"]
    key = hash_request(request["method"], request["path"], request["body"].encode())
    (tmp_path / f"{key}.json").write_text(json.dumps(recording))
    async with ReplayProvider(tmp_path, timed=False) as fake:
        answer = await session.post(fake.origin + request["path"], data=request["body"])
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()


async def test_what_the_client_did_not_wait_for_is_cut(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    body = {"model": "to-openai", "messages": [{"role": "user", "content": "fake:stall"}], "stream": True}
    async with session.post(f"{rig.url}/v1/chat/completions", json=body) as answer:
        await answer.content.readline()
        (running,) = (await page.read("exchanges"))["exchanges"]
        _, text = await page.get(f"/page/api/exchanges/{running['id']}/export?as=recording")
        assert json.loads(text)["answer"]["broken"] == "the call was still running"
    assert json.loads(await export(page, "recording"))["answer"]["broken"] == "the client left"


CASES: dict[str, tuple[str, JsonObject, int]] = {
    "a reply": ("/v1/chat/completions", {"messages": HELLO, "user": "u"}, 200),
    "a stream": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "stream": True}, 200),
    "an error": ("/v1/chat/completions", {"messages": [{"role": "nobody"}]}, 400),
    "a response": ("/v1/responses", {"input": "hi"}, 200),
    "vectors": ("/v1/embeddings", {"input": ["hi"]}, 200),
}


async def test_the_cases_run(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """One run of the suite has the cases of five exchanges; it sends what the clients sent."""
    for name, (path, body, status) in CASES.items():
        assert await ask(session, rig, path, {"model": "to-databricks", **body}) == status, name
        (tmp_path / f"{name}.yaml").write_text(await export(page, "case"))
    given = ("--base-url", f"{rig.url}/v1", "--model", "to-databricks", "--cases", str(tmp_path))
    code, output = await run(sys.executable, "-m", "dragoman", "contract", "run", *given)
    assert code == 0, output
    exchanges = [await page.read(f"exchanges/{one['id']}") for one in await page.list_ended()]
    sent = [one["client"]["request"]["body"] for one in exchanges[: len(CASES)]]
    wanted = [json.dumps({"model": "to-databricks", **body}) for _, body, _ in CASES.values()]
    assert sorted(map(sort_keys, sent)) == sorted(map(sort_keys, wanted)), output


def sort_keys(body: str) -> str:
    return json.dumps(json.loads(body), sort_keys=True)


@pytest.mark.parametrize(("policy", "code"), [("drop", 0), ("refuse", 1)])
async def test_the_case_for_a_proxy_checks_what_it_sends(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession, tmp_path: Path, policy: str, code: int
) -> None:
    """The proxy under test leads to a fake provider of the contract."""
    messages = [{"role": "user", "content": "hello"}]
    body = {"model": "to-databricks", "messages": messages, "seed": 7, "max_completion_tokens": 20}
    await ask(session, rig, "/v1/chat/completions", body)
    (tmp_path / "exported.yaml").write_text(text := await export(page, "case"))
    assert "- seed" in text and "max_tokens: 20" in text
    port = find_free_port()
    providers = {"p": {"dialect": "databricks", "base_url": f"http://127.0.0.1:{port}"}}
    models = {"m": {"targets": [{"provider": "p", "model": "fake-model"}], "policy": {"unsupported": policy}}}
    async with run_page_rig(providers=providers, models=models) as tested:
        given = ("--base-url", f"{tested.url}/v1", "--model", "m", "--cases", str(tmp_path))
        upstream = ("--upstream", "databricks", "--upstream-port", str(port))
        found, output = await run(sys.executable, "-m", "dragoman", "contract", "run", *given, *upstream)
    assert found == code, output
    assert "/sent" in output or code == 0, output


@pytest.mark.parametrize("rig", ["heads"], indirect=True)
@pytest.mark.parametrize("form", ["curl", "recording", "case"])
async def test_what_is_not_kept_cannot_be_exported(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession, form: str
) -> None:
    await ask(session, rig, "/v1/chat/completions", {"model": "to-openai", "messages": HELLO})
    (latest,) = await page.list_ended()
    status, text = await page.get(f"/page/api/exchanges/{latest['id']}/export?as={form}")
    assert (status, "server.inspect" in json.loads(text)["error"]) == (400, True)
    assert (await page.get(f"/page/api/exchanges/{latest['id']}/export?as=pdf"))[0] == 404
