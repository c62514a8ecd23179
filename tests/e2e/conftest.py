"""A proxy over four fake providers, and clients of four dialects that ask it."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from multidict import CIMultiDict
from yarl import URL

from dragoman.adapters import dialects
from dragoman.adapters.validation import load_validator
from dragoman.contract.fakes import FakeProvider
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start

DIALECTS = ("openai", "databricks", "azure", "mindie")


@dataclass
class House:
    """A running proxy, and the fake provider behind each of its models; a model is named like its dialect."""

    proxy: RunningProxy
    fakes: dict[str, FakeProvider]
    log: io.BytesIO = field(default_factory=io.BytesIO)
    profiles: Mapping[str, str] = field(default_factory=dict)
    """Those in which the dialects are served, where they are not the defaults."""

    @property
    def base_url(self) -> str:
        return f"{self.proxy.url}/v1"

    def line(self, request_id: str) -> dict[str, Any] | None:
        """The log's line of a request; the latest, where several have that id."""
        mark = json.dumps(request_id).encode()
        found = [line for line in self.log.getvalue().splitlines() if mark in line]
        return json.loads(found[-1]) if found else None


def configuration(fakes: dict[str, FakeProvider], **more: Any) -> Config:
    """What is given goes to the top; `protocols` and `limits` go to the providers, each of which gets the protocols
    that its dialect has, and `more_models` to the models."""
    kind = {"databricks": {"kind": "provisioned-throughput"}}
    protocols, limits = more.pop("protocols", ["chat"]), more.pop("limits", {})
    spoken = {name: [one for one in protocols if one in dialects[name].called] or ["chat"] for name in fakes}
    models = more.pop("more_models", {})
    return Config.model_validate(
        {
            "providers": {
                name: {"dialect": name, "base_url": fake.base_url, "api_key": "sk-upstream", **kind.get(name, {})}
                | {"protocols": spoken[name], "limits": limits}
                for name, fake in fakes.items()
            },
            "models": {name: {"targets": [{"provider": name, "model": f"{name}-model"}]} for name in fakes} | models,
            **more,
            "server": {"port": 0, "drain": {"delay": 0.001}, **more.get("server", {})},
        }
    )


@pytest.fixture
def house_type() -> type[House]:
    return House


@pytest_asyncio.fixture
async def build() -> AsyncIterator[Callable[..., Awaitable[House]]]:
    """Makes houses. What is given is configuration."""
    async with AsyncExitStack() as stack:

        async def make(**more: Any) -> House:
            fakes = {
                name: await stack.enter_async_context(FakeProvider(name, api_key="sk-upstream")) for name in DIALECTS
            }
            log = io.BytesIO()
            running = await start(configuration(fakes, **more), log_stream=log)
            stack.push_async_callback(running.stop)
            return House(running, fakes, log, more.get("server", {}).get("profiles", {}))

        yield make


@pytest_asyncio.fixture
async def house(build: Callable[..., Awaitable[House]]) -> House:
    return await build()


@dataclass(frozen=True)
class Answer:
    """What came back. `broken` where the connection ended in the middle of the body."""

    status: int
    headers: Mapping[str, str]
    raw: bytes
    broken: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def events(self) -> list[Any]:
        """The data of each event, `[DONE]` as it is."""
        assert self.raw.endswith(b"\n\n"), self.raw[-200:]
        datas = [event.removeprefix(b"data: ") for event in self.raw.split(b"\n\n")[:-1]]
        return [data.decode() if data == b"[DONE]" else json.loads(data) for data in datas]


USUAL_PROFILES = {"mindie": "documented"}

# Kind of fault -> client dialect -> status and word: the type in openai's body, the error_code in databricks', error in
# azure's, the error_type in mindie's. `syntax` is what is no JSON text.
FAULTS: dict[str, dict[str, tuple[int, str]]] = json.loads((Path(__file__).parent / "fixtures/faults.json").read_text())


@dataclass(frozen=True)
class Client:
    """Writes requests in its dialect, and judges what comes back by the schemas of that dialect."""

    dialect: str
    paths: tuple[str, ...]
    profile: str
    session: aiohttp.ClientSession
    house: House
    key: str | None = None
    protocol: str = "chat"

    async def ask(
        self,
        model: str,
        text: str = "hello",
        *,
        way: int = 0,
        headers: Mapping[str, str] | None = None,
        **body: Any,
    ) -> Answer:
        """Chat. `way` picks one of the dialect's addresses; a value of None leaves a key out."""
        whole = {"model": model, "messages": [{"role": "user", "content": text}], **body}
        path = self.paths[way % len(self.paths)]
        if "{model}" in path:
            del whole["model"]
        data = {key: value for key, value in whole.items() if value is not None}
        return await self.send(json.dumps(data).encode(), path.format(model=model), headers)

    async def send(self, body: bytes, path: str = "", headers: Mapping[str, str] | None = None) -> Answer:
        """Any bytes to any address, the dialect's last where none is given."""
        url = URL(self.house.proxy.url + (path or self.paths[-1]), encoded=True)
        keys = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        heads = {"Content-Type": "application/json", **keys, **(headers or {})}
        raw = b""
        async with self.session.post(url, data=io.BytesIO(body), headers=heads) as response:
            try:
                async for data in response.content.iter_any():
                    raw += data
            except aiohttp.ClientPayloadError:
                return Answer(response.status, response.headers, raw, broken=True)
            return Answer(response.status, response.headers, raw)

    def answer(self, status: int, headers: Mapping[str, str], raw: bytes) -> Answer:
        return Answer(status, CIMultiDict(headers), raw)

    def check(self, body: Any, side: str) -> None:
        """By the schema of the profile in which the dialect is served."""
        found = [
            f"{v.path}: {v.message}"
            for v in load_validator(f"{self.dialect}/{self.protocol}.{side}", self.profile).violations(body)
        ]
        assert found == [], (side, body)

    def check_error(self, answer: Answer, kind: str, *words: str, status: int | None = None) -> Any:
        """That it is this dialect's error of that kind, and says those words; the body. `status` where it is not the
        kind's usual one."""
        usual, word = FAULTS[kind][self.dialect]
        status = status or usual
        told = (kind, answer.status, answer.raw[:400])
        assert answer.status == status, told
        assert answer.headers["Content-Type"] == "application/json", told
        assert answer.headers["x-request-id"], told
        assert not answer.broken
        body = answer.json
        self._check_form(body, status, word, answer.headers)
        text = json.dumps(body, ensure_ascii=False)
        for one in words:
            assert one in text, told
        return body

    def _check_form(self, body: Any, status: int, word: str, headers: Mapping[str, str]) -> None:
        if self.dialect == "openai":
            self.check(body, "error")
            assert body.keys() == {"error"}
            assert body["error"]["message"]
            assert body["error"]["type"] == word
        elif self.dialect == "databricks":
            self.check(body, "error")
            assert body.keys() == {"error_code", "message"}
            assert body["message"]
            assert body["error_code"] == word
        elif self.dialect == "azure":
            self._check_azure(body, status, word, headers)
        else:
            self.check(body, "error")
            assert body.keys() == {"error", "error_type"}
            assert body["error"]
            assert body["error_type"] == word

    def _check_azure(self, body: Any, status: int, word: str, headers: Mapping[str, str]) -> None:
        own = {"error", "message", "status"}
        if status == 422:
            own |= {"code", "detail"}
        elif status not in (401, 404, 429):
            own |= {"code", "param"}
        assert body.keys() - {"detail"} == own - {"detail"}
        assert isinstance(body.get("detail", ""), dict if status == 422 else str)
        assert (body["status"], body["error"]) == (status, word)
        assert headers["x-ms-error-code"] == body.get("code", headers["x-ms-error-code"])
        self.check({key: value for key, value in body.items() if status == 422 or key != "detail"}, "error")

    def check_events(self, answer: Answer) -> list[Any]:
        """That it is a whole stream; its chunks."""
        told = (answer.status, answer.raw[-400:])
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream"), told
        assert not answer.broken
        *events, done = answer.events
        assert done == "[DONE]"
        assert "[DONE]" not in events
        for event in events:
            self.check(event, "event")
        return events

    def check_broken(self, answer: Answer) -> list[Any]:
        """That it is a stream with an error at its end, in the dialect's way; the chunks before it."""
        told = (answer.status, answer.raw[-400:])
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream"), told
        *events, last = answer.events
        assert "[DONE]" not in events, told
        for event in events:
            self.check(event, "event")
        self._check_last(last)
        assert answer.broken == (self.dialect == "azure"), told
        return events

    def _check_last(self, last: Any) -> None:
        if self.dialect == "databricks":
            assert last.keys() == {"error", "error_code", "message"}
            assert last["error"].keys() == {"message", "type", "param", "code"}
            self.check({key: value for key, value in last.items() if key != "error"}, "error")
        elif self.dialect == "azure":
            assert last.keys() == {"error"}
            assert last["error"].keys() == {"code", "message", "status"}
            assert last["error"]["message"]
        else:
            self.check(last, "error")
            assert last.keys() == ({"error"} if self.dialect == "openai" else {"error", "error_type"})


PATHS = {
    "openai": ("/openai/v1/chat/completions", "/v1/chat/completions"),
    "databricks": (
        "/databricks/serving-endpoints/{model}/invocations",
        "/databricks/serving-endpoints/chat/completions",
        "/serving-endpoints/{model}/invocations",
        "/serving-endpoints/chat/completions",
    ),
    "azure": (
        "/azure/chat/completions?api-version=2025-05-01",
        "/chat/completions?api-version=2024-05-01-preview",
    ),
    "mindie": ("/mindie/v1/chat/completions",),
}
COMPLETIONS = {
    "openai": ("/openai/v1/completions", "/v1/completions"),
    "databricks": ("/databricks/serving-endpoints/completions", "/serving-endpoints/completions"),
}


@pytest_asyncio.fixture
async def client_of() -> AsyncIterator[Callable[[House, str], Client]]:
    """The client of a dialect, for a house."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=128, force_close=True)) as session:

        def make(house: House, dialect: str, key: str | None = None, protocol: str = "chat") -> Client:
            profile = house.profiles.get(dialect) or USUAL_PROFILES.get(dialect, "actual")
            paths = (PATHS if protocol == "chat" else COMPLETIONS)[dialect]
            return Client(dialect, paths, profile, session, house, key, protocol)

        yield make
