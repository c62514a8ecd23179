"""The load generator of the benchmarks: clients in a closed loop on keep-alive connections.

`python _load.py PORT CASE SECONDS PID` prints one JSON object (see `measure`). It reads the processor time of process
PID and its descendants at the start and the end of the measurement; PID 0 means that there is no process.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any, cast

import uvloop
from _upstream import EVENTS

__all__ = ["CASES", "WARM_UP"]

CASES = {"whole": 16, "paced": 32, "burst": 4, "responses": 32, "messages": 32}  # concurrent connections
WARM_UP = 1.0  # seconds before the measurement starts
SIZE = 4096  # bytes of a request's body
PATHS = {"responses": "/v1/responses", "messages": "/v1/messages"}  # of cases that do not send chat
FRAMES = {"responses": 6, "messages": 3}  # how many events more than a chat stream their streams have
ENDS = {"messages": b'data: {"type":"message_stop"}\n\n'}  # of streams that do not end with `[DONE]`
VERSION = "anthropic-version: 2023-06-01\r\n"


def main() -> None:
    port, case, seconds, pid = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    print(json.dumps(uvloop.run(measure(port, case, seconds, pid))))


async def measure(port: int, case: str, seconds: float, pid: int) -> dict[str, Any]:
    """Measure `units` (answers or stream events), `cpu_us` per unit, `per_second`, `p50_ms` of an answer, `errors`."""
    loop = asyncio.get_running_loop()
    tally = Tally()
    connections = [await connect(loop, port, case, tally) for _ in range(CASES[case])]
    await asyncio.sleep(WARM_UP)
    tally.reset()
    before, started = read_cpu_ns(pid), time.perf_counter()
    await asyncio.sleep(seconds)
    spent, window = read_cpu_ns(pid) - before, time.perf_counter() - started
    units = tally.answers if case == "whole" else tally.events
    result = {
        "units": units,
        "cpu_us": spent / 1000 / units if units and pid else None,
        "per_second": units / window,
        "p50_ms": 1000 * sorted(tally.times)[len(tally.times) // 2] if tally.times else None,
        "errors": tally.errors,
        "error": tally.error,
    }
    for connection in connections:
        connection.stop()
    return result


async def connect(loop: asyncio.AbstractEventLoop, port: int, case: str, tally: Tally) -> Client:
    request = build_request(port, case)
    _, client = await loop.create_connection(lambda: Client(request, case, tally), "127.0.0.1", port)
    return client


class Tally:
    """Counts the answers since the last reset."""

    def __init__(self) -> None:
        self.errors = 0
        self.error = ""
        self.reset()

    def reset(self) -> None:
        self.answers = self.events = 0
        self.times: list[float] = []

    def record_error(self, what: str) -> None:
        self.errors += 1
        self.error = self.error or what


class Client(asyncio.Protocol):
    """A connection that sends one request after the other. It stops at the first wrong answer."""

    def __init__(self, request: bytes, case: str, tally: Tally) -> None:
        self.request, self.tally = request, tally
        self.streams = case != "whole"
        self.expected = EVENTS + FRAMES.get(case, 0)
        self.end_of_stream = ENDS.get(case, b"data: [DONE]\n\n")
        self.stopped = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transport does not derive from it
        self.send()

    def send(self) -> None:
        self.received = bytearray()
        self.end: int | None = None  # where the answer ends, once known; a chunked one ends with its last chunk
        self.body = 0
        self.sent_at = time.perf_counter()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.tally.events += data.count(b"data: {")
        if not self.body and not self.read_head():
            return
        if len(self.received) == self.end if self.end else self.received.endswith(b"\r\n0\r\n\r\n"):
            self.finish()

    def read_head(self) -> bool:
        self.body = self.received.find(b"\r\n\r\n") + 4
        if self.body == 3:
            self.body = 0
            return False
        for line in self.received[: self.body].lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                self.end = self.body + int(line[15:])
        return True

    def finish(self) -> None:
        self.tally.answers += 1
        self.tally.times.append(time.perf_counter() - self.sent_at)
        body = bytes(self.received[self.body :])
        if error := self.find_error(body if self.end else join_chunks(body)):
            self.tally.record_error(error)
            self.stop()
        else:
            self.send()

    def find_error(self, body: bytes) -> str:
        """Say what is wrong with the answer, empty if nothing."""
        if not self.received.startswith(b"HTTP/1.1 200 "):
            return self.received[:600].decode(errors="replace")
        if not self.streams:
            return "" if b'"chat.completion"' in body else f"no completion: {body[:200]!r}"
        if body.count(b"data: {") != self.expected or not body.endswith(self.end_of_stream):
            return f"a stream of {body.count(b'data: {')} events, not {self.expected}, that ends with {body[-100:]!r}"
        return ""

    def stop(self) -> None:
        self.stopped = True
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.stopped:
            self.tally.record_error(f"the connection was closed: {exc or 'without an error'}")


def join_chunks(body: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while True:
        line = body.index(b"\r\n", at)
        size = int(body[at:line].partition(b";")[0], 16)
        if not size:
            return b"".join(parts)
        parts.append(body[line + 2 : line + 2 + size])
        at = line + 4 + size


def build_request(port: int, case: str) -> bytes:
    """Build a request of 4 KB: ten messages, three tools, some text outside ASCII."""
    question = "Was heißt »dragoman«, und woher kommt das Wort? 翻译。"
    turns = [{"role": "assistant" if turn % 2 else "user", "content": f"{turn}: {question}"} for turn in range(8)]
    last = {"role": "user", "content": ""}
    messages = [{"role": "system", "content": "Answer briefly."}, *turns, last]
    tools = [build_tool(name) for name in ("lookup", "translate", "compare")]
    asked = BUILDERS.get(case, build_chat)(messages, tools)
    body = {"model": f"bench-{case}", **asked, "temperature": 0.7, "stream": case != "whole"}
    last["content"] = "x" * (SIZE - len(encode(body)))
    data = encode(body)
    head = f"POST {PATHS.get(case, '/v1/chat/completions')} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nuser-agent: bench\r\n"
    head += VERSION if case == "messages" else ""
    return f"{head}accept: */*\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


def build_chat(messages: list[dict[str, str]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {"messages": messages, "tools": tools, "max_tokens": 256}


def build_responses(messages: list[dict[str, str]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    flat = [{"type": "function", **one["function"]} for one in tools]
    return {"input": messages, "tools": flat, "max_output_tokens": 256}


def build_messages(messages: list[dict[str, str]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    system, *turns = messages
    schemas = [{**one["function"], "input_schema": one["function"]["parameters"]} for one in tools]
    own = [{key: value for key, value in one.items() if key != "parameters"} for one in schemas]
    return {"system": system["content"], "messages": turns, "tools": own, "max_tokens": 256}


BUILDERS = {"responses": build_responses, "messages": build_messages}


def build_tool(name: str) -> dict[str, Any]:
    word = {"type": "string", "description": "The word, in the language that it was found in."}
    parameters = {"type": "object", "properties": {"word": word, "limit": {"type": "integer"}}, "required": ["word"]}
    return {"type": "function", "function": {"name": name, "description": f"To {name}.", "parameters": parameters}}


def encode(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def read_cpu_ns(pid: int) -> int:
    """Read the processor time of the process, its threads and its descendants so far, user and system."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir() if pid else ():
        total += int((task / "schedstat").read_text().split()[0])
        total += sum(read_cpu_ns(int(child)) for child in (task / "children").read_text().split())
    return total


if __name__ == "__main__":
    main()
