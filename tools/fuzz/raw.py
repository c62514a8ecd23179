"""Mutated raw requests, sent to a running proxy over a fake provider: whatever bytes come, the proxy answers in time,
without an error of its own and without a traceback."""

from __future__ import annotations

import asyncio
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from dragoman.contract.fakes import FakeProvider
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start

__all__ = ["RawReport", "draw_raw", "fuzz_raw"]

_HANG = 1.0  # seconds until the connection has to be closed, once the client has sent its end
_PATIENCE = 0.25  # seconds that a client waits for an answer before it sends its end
_AT_ONCE = 64

_CHATS = (
    b'{"model":"m","messages":[{"role":"user","content":"hello"}]}',
    b'{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true}',
    b'{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f",'
    b'"parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}],"tool_choice":"auto","stop":["x"],"n":2}',
)
_RESPONSES = (
    b'{"model":"m","input":"hello","store":true,"previous_response_id":"resp_x"}',
    b'{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hello"}]}],"stream":true}',
    b'{"model":"m","input":"hello"}',
)
_EMBEDDINGS = (
    b'{"model":"m","input":["a","b"]}',
    b'{"model":"m","input":"a","encoding_format":"base64","dimensions":8}',
)
_TARGETS = (
    (b"/v1/chat/completions", _CHATS),
    (b"/chat/completions?api-version=2024-05-01-preview", _CHATS[:2]),
    (b"/serving-endpoints/m/invocations", _CHATS),
    (b"/mindie/v1/chat/completions", _CHATS[:2]),
    (b"/v1/responses", _RESPONSES),
    (b"/serving-endpoints/responses", _RESPONSES[2:]),
    (b"/v1/completions", (b'{"model":"m","prompt":["a","b"],"max_tokens":5,"logprobs":1}',)),
    (b"/v1/embeddings", _EMBEDDINGS),
    (b"/embeddings?api-version=2024-05-01-preview", _EMBEDDINGS[:1]),
    (b"/v1/models", (b"",)),
    (b"/v1/responses/resp_x/input_items", (b"",)),
    (b"/live", (b"",)),
    (b"/", (b"",)),
)
_HEADERS = (
    b"Content-Type: application/json", b"Authorization: Bearer sk-x", b"api-key: x", b"Accept: text/event-stream",
    b"Content-Encoding: gzip", b"Expect: 100-continue", b"Connection: keep-alive", b"Connection: close",
    b"extra-parameters: drop", b"x-request-id: a", b"Accept-Encoding: gzip", b"Origin: http://evil.example",
    b"Sec-Fetch-Site: cross-site", b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    b"Idempotency-Key: x", b"Transfer-Encoding: chunked", b"Upgrade: h2c", b"x-ratelimit: 1", b"Cookie: a=b",
)  # fmt: skip
_TOKENS = (
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"\r\n\r\n", b"HTTP/1.0", b"HTTP/1.1", b"HTTP/2.0",
    b"GET ", b"POST ", b"OPTIONS * ", b"CONNECT a:1 ", b"Content-Length: 0\r\n", b"Content-Length: 5\r\n", b"0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Host: x\r\n", b"\xff\xfe", b"\xc3\xa9", b"\x1b[31m", b"%00", b"../",
    b'"', b"{", b"}", b"[", b"]", b"\\ud800", b"1e999", b"-1", b"99999999999999999999", b"NaN", b"null", b"true", b"[]",
    b"{}", b"9" * 400, b"a" * 9000, b"[" * 500, b"X: y\r\n" * 120, b"\r\nX:\r\n y", b"data: ", b"ffffffffffffffff\r\n",
)  # fmt: skip


def draw_raw(seed: str, number: int) -> bytes:
    """Draw one case: one to three requests, damaged in up to six places. The same seed and number give the same."""
    chance = Random(f"{seed}/{number}")
    data = b"".join(_draw_request(chance) for _ in range(chance.choice((1, 1, 1, 2, 3))))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 6))):
        data = _damage(chance, data)
    return data


def _draw_request(chance: Random) -> bytes:
    path, bodies = chance.choice(_TARGETS)
    body = chance.choice(bodies)
    if body and chance.random() < 0.5:
        body = _damage(chance, body)  # its length is right, so that it reaches more than the parser of HTTP
    method = b"POST" if body else chance.choice((b"GET", b"DELETE", b"HEAD", b"OPTIONS"))
    headers = [
        b"Host: 127.0.0.1",
        b"Content-Type: application/json",
        *chance.sample(_HEADERS, chance.choice((0, 0, 1, 3))),
    ]
    if b"Transfer-Encoding: chunked" in headers:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    else:
        headers.append(b"Content-Length: %d" % len(body))
    chance.shuffle(headers)
    return b"%s %s HTTP/1.1\r\n%s\r\n\r\n%s" % (method, path, b"\r\n".join(headers), body)


def _damage(chance: Random, data: bytes) -> bytes:
    """Alter one place: a bit, some bytes, a line, a number, or the order."""
    start = chance.randrange(len(data) + 1)
    end = min(len(data), start + int(chance.expovariate(1 / 8)) + 1)
    lines = data.split(b"\r\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(10):
        case 0:
            flipped = bytes(byte ^ (1 << chance.randrange(8)) for byte in data[start : start + 1])
            return data[:start] + flipped + data[start + 1 :]
        case 1:
            return data[:start] + data[end:]
        case 2 | 3 | 4:
            return data[:start] + chance.choice(_TOKENS) + data[chance.choice((start, end)) :]
        case 5:
            return data[:end] + data[start:]
        case 6:
            return b"\r\n".join([*lines[:one], lines[other], *lines[one:]])
        case 7:
            lines[one], lines[other] = lines[other], lines[one]
            return b"\r\n".join(lines)
        case 8:
            wrong = b"%d" % chance.choice((0, 1, 5, 60, 1000, 2**31, 2**63, 2**64))
            return re.sub(rb"(?<=Length: )\d+", wrong, data, count=1)
        case _:
            return data[:start] + chance.randbytes(end - start) + data[end:]


@dataclass
class RawReport:
    """What became of the cases: the statuses of all answers, and the cases in which something does not hold."""

    cases: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    findings: dict[int, str] = field(default_factory=dict)
    """Number of the case -> what does not hold."""
    tracebacks: list[str] = field(default_factory=list)

    def describe(self) -> str:
        own = sum(count for status, count in self.statuses.items() if _is_own_failure(status))
        hangs = sum("open" in text for text in self.findings.values())
        return (
            f"{self.cases} raw requests: {own} answers of 5xx, {hangs} hangs, {len(self.tracebacks)} tracebacks,"
            f" {len(self.findings)} cases in all that do not hold"
        )


async def fuzz_raw(seed: str, numbers: range) -> RawReport:
    """Send the cases with these numbers to a proxy in this process, 64 at once."""
    report, log, busy = RawReport(), _Log(), asyncio.Semaphore(_AT_ONCE)
    async with FakeProvider("openai") as fake:
        running = await start(_configure(fake.base_url), log_stream=log)

        async def one(number: int) -> None:
            try:
                await _check(number, await _send(running.port, draw_raw(seed, number)), report)
            except TimeoutError:
                report.findings[number] = f"the connection is open {_HANG:g} s after the client's end"
            finally:
                busy.release()

        tasks: set[asyncio.Task[None]] = set()
        for number in numbers:
            await busy.acquire()
            tasks.add(task := asyncio.create_task(one(number)))
            task.add_done_callback(tasks.discard)
            if number % 500 == 0:
                fake.requests.clear()
        await asyncio.gather(*tasks)
        await running.stop()
    report.tracebacks = log.tracebacks
    return report


class _Log(io.BytesIO):
    """Keeps only the lines of defects."""

    def __init__(self) -> None:
        super().__init__()
        self.tracebacks: list[str] = []

    def write(self, data: object) -> int:
        text = bytes(data)  # type: ignore[call-overload]
        self.tracebacks += [
            line.decode() for line in text.splitlines() if b"Traceback" in line or b'"event":"defect"' in line
        ]
        return len(text)


def _configure(base_url: str) -> Config:
    protocols = ["chat", "responses", "completions", "embeddings"]
    return Config.from_values(
        {
            "server": {"port": 0, "drain": {"delay": 0.001, "timeout": 1}},
            "store": {"kind": "memory"},
            "providers": {"p": {"dialect": "openai", "base_url": base_url, "protocols": protocols}},
            "models": {"*": {"targets": [{"provider": "p", "model": "up"}]}},
        }
    )


async def _send(port: int, data: bytes) -> bytes:
    """Send a case, wait a moment, send the end, and read all answers. Raises TimeoutError."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = bytearray()

    async def read() -> None:
        try:
            while piece := await reader.read(65536):
                received.extend(piece)
        except ConnectionError:
            pass  # a reset ends the answers too

    reading = asyncio.create_task(read())
    try:
        writer.write(data)
        await asyncio.wait([reading], timeout=_PATIENCE)
        if not reading.done():
            writer.write_eof()
            await asyncio.wait_for(reading, _HANG)
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
        await asyncio.wait_for(reading, _HANG)
    finally:
        reading.cancel()
        writer.close()
    return bytes(received)


_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) [^\r\n]*\r\n(?=[A-Za-z-]+: )")


def _is_own_failure(status: int) -> bool:
    return status >= 500 and status not in (501, 505)  # a coding and a version that HTTP lets a server refuse


async def _check(number: int, answer: bytes, report: RawReport) -> None:
    report.cases += 1
    statuses: Sequence[int] = [int(status) for status in _STATUS.findall(answer)]
    report.statuses.update(statuses)
    if own := [status for status in statuses if _is_own_failure(status)]:
        report.findings[number] = f"status {own[0]}: {answer[-300:]!r}"
    elif answer and not answer.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")):
        report.findings[number] = f"no HTTP: {answer[:100]!r}"
