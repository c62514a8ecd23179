"""The fault matrix: one client of each dialect and protocol asks a proxy over a faulty upstream, whole and streamed."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import re
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start
from tests.dialects import served
from tests.e2e.client import FAULTS, USUAL_PROFILES, Answer, Client
from tests.e2e.house import House

from .faulty_upstream import PATHS, Fault, FaultyUpstream, Usual

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["Case", "Matrix", "list_cases", "open_matrix"]

_ADDRESSES = {
    "chat": {
        "openai": "/v1/chat/completions",
        "databricks": "/serving-endpoints/chat/completions",
        "azure": "/chat/completions?api-version=2024-05-01-preview",
        "mindie": "/mindie/v1/chat/completions",
    },
    "responses": {"openai": "/v1/responses", "databricks": "/serving-endpoints/responses"},
    "completions": {"openai": "/v1/completions", "databricks": "/serving-endpoints/completions"},
    "embeddings": {
        "openai": "/v1/embeddings",
        "databricks": "/serving-endpoints/embeddings",
        "azure": "/embeddings?api-version=2024-05-01-preview",
    },
}
_REQUESTS: dict[str, JsonObject] = {
    "chat": {"messages": [{"role": "user", "content": "hello"}]},
    "responses": {"input": [{"role": "user", "content": "hello"}]},
    "completions": {"prompt": "hello"},
    "embeddings": {"input": ["hello"]},
}
_LEAKS = (b"smuggled", b"SSH-2.0", b"127.0.0.1", b"<!doctype", b"sk-upstream")
_PROVIDERS = 64  # so many cases run at once
_PATIENT = {"connect": 30.0, "first_token": 30.0, "inter_token": 30.0, "total": 60.0}
_IMPATIENT = {"connect": 30.0, "first_token": 2.5, "inter_token": 2.5, "total": 4.0}  # for upstreams that fall silent


@dataclass(frozen=True)
class Case:
    """A fault, and the client that meets it."""

    fault: Fault
    protocol: str
    dialect: str
    stream: bool

    @property
    def expected(self) -> str:
        results = self.fault.stream if self.stream else self.fault.whole
        return results if isinstance(results, str) else results.get(self.protocol, results["other"])

    @property
    def model(self) -> str:
        return f"{self.fault.model}.{self.protocol}.{self.dialect}.{'stream' if self.stream else 'whole'}"


def list_cases(faults: Iterable[Fault]) -> list[Case]:
    """Every fault for every protocol and dialect, whole and, if the protocol has streams, streamed."""
    return [
        Case(fault, protocol, dialect, stream)
        for fault in faults
        for protocol, dialects in _ADDRESSES.items()
        for dialect in dialects
        for stream in (False, True)
        if not (stream and protocol == "embeddings")
    ]


class LogIndex(io.BytesIO):
    """A log whose lines are found by their request's id."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[str, JsonObject] = {}
        self._rest = b""

    def write(self, data: ReadableBuffer) -> int:
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        for line in map(json.loads, lines):
            self._lines[line.get("request_id", "")] = line
        return len(bytes(data))

    async def find(self, request_id: str) -> JsonObject:
        """Raises TimeoutError if no line comes."""
        async with asyncio.timeout(10):
            while request_id not in self._lines:  # noqa: ASYNC110 - the log has no event to wait for
                await asyncio.sleep(0.01)
        return self._lines.pop(request_id)


class Matrix:
    """A running proxy over the faulty upstream. `run` returns what became of a case:

    `ok`: the client got the whole reply; `STATUS KIND CODE`: it got an error, with the status of OpenAI's clients;
    `late CODE`: its stream ended with an error in the dialect's form.
    """

    def __init__(self, house: House, log: LogIndex, session: aiohttp.ClientSession, usual: Usual) -> None:
        self._house, self._log, self._session = house, log, session
        self._numbers = itertools.count(1)
        self._texts = {protocol: read_texts(protocol, [json.loads(usual[protocol, False])]) for protocol in PATHS}
        self._free: asyncio.Queue[int] = asyncio.Queue()
        for number in range(_PROVIDERS):
            self._free.put_nowait(number)

    async def run(self, case: Case) -> str:
        client = Client(
            case.dialect,
            (_ADDRESSES[case.protocol][case.dialect],),
            USUAL_PROFILES.get(case.dialect, "actual"),
            self._session,
            self._house,
            protocol=case.protocol,
        )
        provider = await self._free.get()  # one case at a time: the fault of one breaks no connection of another
        request = {
            "model": f"p{provider}.{case.model}",
            **_REQUESTS[case.protocol],
            **({"stream": True} if case.stream else {}),
        }
        mark = f"case-{next(self._numbers)}"
        try:
            answer = await client.send(json.dumps(request).encode(), headers={"x-request-id": mark})
            line = await self._log.find(mark)
        finally:
            self._free.put_nowait(provider)
        return self._judge(case, client, answer, line)

    def _judge(self, case: Case, client: Client, answer: Answer, line: JsonObject) -> str:
        assert not [leak for leak in _LEAKS if leak in answer.raw], answer.raw[:400]
        if answer.status != 200:
            return _judge_error(case, client, answer, line)
        if line["outcome"] == "fault":
            assert case.stream, "a whole reply with status 200 is a success"
            _check_late(case.protocol, client, answer)
            return f"late {line['fault']}"
        assert not answer.broken
        chunks = client.check_events(answer) if case.stream and case.protocol in ("chat", "completions") else None
        if chunks is None:
            chunks = _read_events(answer) if case.stream else [answer.json]
        assert read_texts(case.protocol, chunks) == self._texts[case.protocol], answer.raw[-400:]
        return "ok"


def _judge_error(case: Case, client: Client, answer: Answer, line: JsonObject) -> str:
    """Check the form and the status of an error. Other dialects than OpenAI's have statuses of their own; only an
    upstream's 5xx is kept."""
    kind = line["fault_kind"] if line["fault_kind"] in FAULTS else "upstream_invalid_response"
    client.check_error(answer, kind, status=answer.status)
    usual, kept = case.expected[:3], int(case.expected[:3]) if case.expected[:3].isdigit() else 0
    if client.dialect == "openai":
        usual = str(answer.status)
    else:
        assert answer.status in (FAULTS[kind][client.dialect][0], kept if kept >= 500 else None), answer.raw[:400]
    return f"{usual} {kind} {line['fault']}"


def _check_late(protocol: str, client: Client, answer: Answer) -> None:
    if protocol != "responses":
        client.check_broken(answer)
        return
    events = _read_events(answer)
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    assert events[-1]["response"]["status"] == "failed"


def _read_events(answer: Answer) -> list[JsonObject]:
    """The events of a Responses stream, which have names."""
    found = re.findall(rb"^data: (.*)$", answer.raw, re.MULTILINE)
    return [json.loads(data) for data in found if data != b"[DONE]"]


def read_texts(protocol: str, documents: Iterable[JsonValue]) -> list[JsonValue]:
    """What a reply says: its text, or its vectors, and that it ends. The chunks of a stream say what the whole says."""
    documents = list(documents)
    if protocol == "embeddings":
        return [one["embedding"] for document in documents for one in document["data"]]
    if protocol == "responses":
        final = next((one["response"] for one in documents if one.get("type") == "response.completed"), documents[0])
        parts = [part for item in final["output"] for part in item.get("content", ())]
        return [final["status"], *(part["text"] for part in parts)]
    choices = [choice for document in documents for choice in document["choices"]]
    parts = [choice.get("message") or choice.get("delta") or choice for choice in choices]
    text = "".join(_read_text(part) for part in parts)
    return [text, len([choice for choice in choices if choice.get("finish_reason")])]


def _read_text(part: JsonObject) -> str:
    return str(part.get("content") or part.get("text") or "")


@asynccontextmanager
async def open_matrix(faults: Collection[Fault], usual: Usual) -> AsyncIterator[Matrix]:
    """Start the upstream and the proxy. The faults either all fall silent, or none does."""
    silent = {"hang" in fault.steps for fault in faults}
    assert len(silent) == 1
    upstream, log = FaultyUpstream(faults, usual), LogIndex()
    server = await upstream.start()
    provider = {
        "dialect": "openai",
        "base_url": f"http://127.0.0.1:{upstream.port}/v1",
        "api_key": "sk-upstream",
        "protocols": list(PATHS),
    }
    config = {
        "server": {"port": 0, "drain": {"delay": 0.001}},
        "store": {"kind": "none"},
        "timeouts": _IMPATIENT if silent == {True} else _PATIENT,
        "providers": {f"p{number}": provider for number in range(_PROVIDERS)},
        "models": {f"p{number}.*": {"targets": [{"provider": f"p{number}"}]} for number in range(_PROVIDERS)},
        "retries": {"attempts": 1},  # each fault is looked at on its own
        "breaker": {"failures": 10**9, "requests": 10**9},
    }
    running = await start(Config.from_values(config), log_stream=log)
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Matrix(House(running, {}, log), log, session, usual)
    await running.stop()
    server.close()


assert {protocol: tuple(served(protocol)) for protocol in _ADDRESSES} == {
    protocol: tuple(dialects) for protocol, dialects in _ADDRESSES.items()
}, "a served dialect is missing in the matrix"
