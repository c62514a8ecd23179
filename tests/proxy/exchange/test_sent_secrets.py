"""Providers that repeat the credentials of a call in a reply that succeeds: clients and the store do not get them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from dragoman.adapters.changes import Receipt
from dragoman.adapters.registry import dialects
from dragoman.adapters.responses.stored import StoredResponse
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.conversations.owner_store import mask_record
from dragoman.proxy.telemetry.sent_secrets import SentSecrets, find_credentials, find_secret_headers
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Step, Wire

KEY = "canary-key/0123456789+abc="
HEADER = "canary-of-a-secret-header"
SHORT = "short-canary-19-char"[:19]
PUBLIC = "https://dragoman.example.com/this-is-no-secret"
MESSAGES: JsonValue = [{"role": "user", "content": "hi"}]
MASKED = "the provider repeated a credential"

CLIENTS: dict[str, tuple[str, JsonObject]] = {
    "openai chat": ("/v1/chat/completions", {"messages": MESSAGES}),
    "databricks chat": ("/serving-endpoints/chat/completions", {"messages": MESSAGES}),
    "azure chat": ("/models/chat/completions?api-version=2024-05-01-preview", {"messages": MESSAGES}),
    "mindie chat": ("/mindie/v1/chat/completions", {"messages": MESSAGES}),
    "openai responses": ("/v1/responses", {"input": "hi"}),
    "databricks responses": ("/serving-endpoints/responses", {"input": "hi"}),
}


class Echo(NamedTuple):
    """What a provider says, and what a client may see of it."""

    said: str
    seen: str


ECHOES = {
    "a key": Echo(f"you sent {KEY}!", "you sent ***!"),
    "two secrets": Echo(f"{HEADER} {KEY} {HEADER}", "*** *** ***"),
    "JSON in a text": Echo(json.dumps({"authorization": f"Bearer {KEY}"}), json.dumps({"authorization": "Bearer ***"})),
    "what is short or public": Echo(f"{SHORT} {PUBLIC}", f"{SHORT} {PUBLIC}"),
}


def provider(port: int, **more: JsonValue) -> JsonObject:
    headers = {"X-Auth-Token": HEADER, "X-Short-Token": SHORT, "HTTP-Referer": PUBLIC}
    return {"base_url": f"http://127.0.0.1:{port}/v1", "api_key": KEY, "headers": headers, **more}


def escape_slashes(body: JsonValue) -> bytes:
    """JSON as PHP writes it."""
    return json.dumps(body).replace("/", "\\/").encode()


def whole(wire: Wire, said: str) -> list[Step]:
    message = {"role": "assistant", "content": said}
    reply = {**wire.reply, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return [wire.http(escape_slashes(reply))]


def streamed(wire: Wire, said: str) -> list[Step]:
    return [*wire.chunked(*(wire.token(text) for text in ("a", "b", "c", said, said)), wire.token("", "stop"), DONE)]


DONE = b"data: [DONE]\n\n"


async def ask(p: Proxy, path: str, body: JsonObject) -> tuple[bytes, str]:
    async with p.session.post(p.running.url + path, json={"model": "m", **body}) as response:
        assert response.status == 200
        return await response.read(), "\n".join(f"{name}: {value}" for name, value in response.headers.items())


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
@pytest.mark.parametrize("client", CLIENTS)
async def test_whole_replies(proxy: StartProxy, upstream: StartUpstream, wire: Wire, client: str, echo: Echo) -> None:
    up = await upstream(*whole(wire, echo.said))
    p = await proxy(provider(up.port), speak=dialects, store={"kind": "none"})
    raw, headers = await ask(p, *CLIENTS[client])
    assert json.dumps(echo.seen)[1:-1] in json.dumps(json.loads(raw))
    assert (MASKED in headers) == (echo.said != echo.seen)
    check_clean(raw, p)
    check_receipt(await p.exchanges(), echo)


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
@pytest.mark.parametrize("client", CLIENTS)
async def test_streams(proxy: StartProxy, upstream: StartUpstream, wire: Wire, client: str, echo: Echo) -> None:
    up = await upstream(*streamed(wire, echo.said))
    p = await proxy(provider(up.port), speak=dialects, store={"kind": "none"})
    path, body = CLIENTS[client]
    raw, _ = await ask(p, path, {**body, "stream": True})
    text = json.dumps(echo.seen)[1:-1].encode()
    assert raw.count(text) >= 2 or "responses" in client
    assert text in raw
    check_clean(raw, p)
    check_receipt(await p.exchanges(), echo)


@pytest.mark.parametrize("split", [1, 7, 1000])
async def test_reads_may_split_an_event_anywhere(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, split: int
) -> None:
    body = b"".join(wire.token(text) for text in ("a", "b", f"x{KEY}y", f"x{KEY}y")) + wire.token("", "stop") + DONE
    steps: list[Step] = [*wire.chunked(*(body[at : at + split] for at in range(0, len(body), split)))]
    p = await proxy(provider((await upstream(*steps)).port))
    answer = await p.ask(stream=True)
    assert answer.text.count(b"x***y") == 2
    check_clean(answer.text, p)


async def test_coalesced_deltas_stay_coalesced(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    many = [wire.token(text) for text in ("a", "b", *[f"x{KEY}y"] * 50)]
    p = await proxy(provider((await upstream(*wire.chunked(b"".join(many), wire.token("", "stop"), DONE))).port))
    answer = await p.ask(stream=True)
    assert answer.text.count(b"x***y") == 50
    (line,) = await p.exchanges()
    assert [change["action"] for change in line["changes"] if "credential" in change["reason"]] == ["converted"]


@pytest.mark.parametrize("stream", [False, True])
async def test_stored_responses(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, tmp_path: Path, stream: bool
) -> None:
    """The last event of a stream, and what is stored, hold a secret that came in pieces as a whole."""
    pieces = [wire.token(text) for text in ("say ", KEY[:9], KEY[9:])]
    steps = [*wire.chunked(*pieces, wire.token("", "stop"), DONE)] if stream else whole(wire, f"say {KEY}")
    file = tmp_path / "responses.db"
    p = await proxy(provider((await upstream(*steps)).port), speak=dialects, store={"path": str(file)})
    raw, _ = await ask(p, "/v1/responses", {"input": "hi", "stream": stream})
    answer = json.loads(raw) if not stream else json.loads(raw.split(b"data: ")[-2])["response"]
    assert answer["output"][0]["content"][0]["text"] == "say ***"
    async with p.session.get(f"{p.running.url}/v1/responses/{answer['id']}") as response:
        assert (await response.json())["output"] == answer["output"]
    assert stream or KEY.encode() not in raw


@pytest.mark.parametrize("secret", ["secret-in-a-text", "secret-of-an-id", "not-there"])
def test_a_record_is_masked_alike_whether_its_text_is_known(secret: str) -> None:
    def create(response: JsonObject, provider_id: str | None, *, is_known: bool = False) -> StoredResponse:
        written = orjson.dumps(response) if is_known else None
        return StoredResponse("resp_1", None, 1.0, "m", [], response, "p", provider_id, written)

    response: JsonObject = {"output": ["a secret-in-a-text"]}
    sent = SentSecrets()
    sent.add((secret.encode(),))
    known, unknown = (
        mask_record(create(response, "secret-of-an-id", is_known=is_known), lambda data: sent.mask(data, None))
        for is_known in (True, False)
    )
    assert known == unknown
    assert known.written in (None, orjson.dumps(known.response))
    assert (known == create(response, "secret-of-an-id")) == (secret == "not-there")


async def test_a_forwarded_header(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    reply = wire.http(json.dumps(wire.reply).encode(), f"served-model-name: {KEY}")
    up = await upstream(reply)
    p = await proxy(provider(up.port, dialect="databricks", kind="provisioned-throughput"), speak=dialects)
    _, headers = await ask(p, *CLIENTS["openai chat"])
    assert "served-model-name: ***" in headers
    assert KEY not in headers


async def test_a_token_that_replaced_another(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    """Each call is masked by what it carried itself."""
    token = json.dumps({"access_token": "canary-of-an-oauth-token", "expires_in": 3600}).encode()
    up, door = await upstream(*whole(wire, "canary-of-an-oauth-token")), await upstream(wire.http(token))
    oauth = {
        "token_url": f"http://127.0.0.1:{door.port}/token",
        "client_id": "me",
        "client_secret": "canary-of-a-client",
    }
    given = {"base_url": f"http://127.0.0.1:{up.port}/v1", "oauth": oauth}
    p = await proxy(given)
    answer = await p.ask()
    assert answer.json["choices"][0]["message"]["content"] == "***"


def test_forms_of_a_secret_in_json() -> None:
    sent = SentSecrets()
    sent.add(find_credentials(b'Authorization: Bearer abcdefghij"klmnop/q\\rst\r\napi-key: short\r\n'))
    receipt, secret = Receipt(), 'abcdefghij"klmnop/q\\rst'
    for _ in range(3):
        for text in (secret, secret.replace("/", "\\/")):
            assert sent.mask(f"<{text}>".encode(), receipt) == b"<***>"
        secret = json.dumps(secret)[1:-1]
    assert [change.weight for change in receipt.changes] == ["loss"]


def test_headers_whose_name_says_that_they_hold_a_secret() -> None:
    value = "x" * 20
    for name in ("X-Auth-Token", "Ocp-Apim-Subscription-Key", "Helicone-Auth", "CF-Access-Client-Secret", "Session"):
        assert find_secret_headers({name: f"Bearer {value}"}) == (value.encode(),)
    for name in ("HTTP-Referer", "X-Title", "OpenAI-Organization", "x-databricks-use"):
        assert find_secret_headers({name: value}) == ()


def check_clean(raw: bytes, p: Proxy) -> None:
    for secret in (KEY, KEY.replace("/", "\\/"), HEADER):
        assert secret.encode() not in raw
        assert secret.encode() not in p.log.getvalue()


def check_receipt(lines: list[JsonObject], echo: Echo) -> None:
    (line,) = lines
    found = [change for change in line.get("changes", []) if "credential" in change["reason"]]
    assert [change["weight"] for change in found] == ["loss"] * (echo.said != echo.seen)
