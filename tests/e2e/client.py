"""Clients of every dialect: they write requests, and check that answers have the form of their dialect."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonValue

from .house import House

__all__ = ["COMPLETIONS", "PATHS", "USUAL_PROFILES", "Answer", "Client", "MakeClient"]


@dataclass(frozen=True)
class Answer:
    """What came back. `broken` where the connection ended in the middle of the body."""

    status: int
    headers: Mapping[str, str]
    raw: bytes
    broken: bool = False

    @property
    def json(self) -> JsonValue:
        return json.loads(self.raw)

    @property
    def events(self) -> list[JsonValue]:
        """The data of each event, `[DONE]` as it is."""
        assert self.raw.endswith(b"\n\n"), self.raw[-200:]
        datas = [event.removeprefix(b"data: ") for event in self.raw.split(b"\n\n")[:-1]]
        return [data.decode() if data == b"[DONE]" else json.loads(data) for data in datas]


USUAL_PROFILES = {"mindie": "documented"}

# Kind of fault -> client dialect -> status and word: the type in openai's body, the error_code in databricks', the
# error_type in mindie's; azure's codes are finer. `syntax` is what is no JSON text.
FAULTS: dict[str, dict[str, tuple[int, str | None]]] = json.loads(
    (Path(__file__).parent / "fixtures/faults.json").read_text()
)


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
        **body: JsonValue,
    ) -> Answer:
        """Chat. `way` picks one of the dialect's addresses; a value of None leaves a key out."""
        path, data = self.write(model, text, way=way, **body)
        return await self.send(data, path, headers)

    def write(self, model: str, text: str = "hello", *, way: int = 0, **body: JsonValue) -> tuple[str, bytes]:
        """The address and the body of what `ask` sends."""
        whole = {"model": model, "messages": [{"role": "user", "content": text}], **body}
        path = self.paths[way % len(self.paths)]
        if "{model}" in path:
            del whole["model"]
        data = {key: value for key, value in whole.items() if value is not None}
        return path.format(model=model), json.dumps(data).encode()

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

    def check(self, body: JsonValue, side: str) -> None:
        """By the schema of the profile in which the dialect is served."""
        found = [
            f"{v.path}: {v.message}"
            for v in load_validator(f"{self.dialect}/{self.protocol}.{side}", self.profile).violations(body)
        ]
        assert found == [], (side, body)

    def check_error(self, answer: Answer, kind: str, *words: str, status: int | None = None) -> JsonValue:
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

    def _check_form(self, body: JsonValue, status: int, word: str | None, headers: Mapping[str, str]) -> None:
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
            self._check_azure(body, status, headers)
        else:
            self.check(body, "error")
            assert body.keys() == {"error", "error_type"}
            assert body["error"]
            assert body["error_type"] == word

    def _check_azure(self, body: JsonValue, status: int, headers: Mapping[str, str]) -> None:
        own = {"error", "message", "status"}
        if status == 422:
            own |= {"code", "detail"}
        elif status not in (401, 404, 429):
            own |= {"code", "param"}
        assert body.keys() - {"detail"} == own - {"detail"}
        assert isinstance(body.get("detail", ""), dict if status == 422 else str)
        code = headers["x-ms-error-code"]
        assert (body["status"], body.get("code", code)) == (status, code)
        shown = {"code": code, "message": body["message"], "status": status}
        if self.profile == "documented":
            assert isinstance(body["error"], str)
        else:
            assert body["error"].items() >= shown.items()
            assert body["error"].keys() - {"details"} == {*shown, "param"}
        self.check({key: value for key, value in body.items() if status == 422 or key != "detail"}, "error")

    def check_events(self, answer: Answer) -> list[JsonValue]:
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

    def check_broken(self, answer: Answer) -> list[JsonValue]:
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

    def _check_last(self, last: JsonValue) -> None:
        if self.dialect == "databricks":
            assert last.keys() == {"error", "error_code", "message"}
            assert last["error"].keys() == {"message", "type", "param", "code"}
            self.check({key: value for key, value in last.items() if key != "error"}, "error")
        elif self.dialect == "azure":
            assert last.keys() == {"error"}
            assert last["error"].keys() == {"code", "message", "status", "param"}
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


class MakeClient(Protocol):
    """Makes the client of a dialect, for a house."""

    def __call__(self, house: House, dialect: str, key: str | None = None, protocol: str = "chat") -> Client: ...
