"""The cases of the benchmarks, and the requests that their clients send."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["CASES", "EVENTS", "PACE", "REPLY", "Case", "build_request", "encode"]

EVENTS = 200  # tokens in a stream
PACE = 0.005  # seconds between the events of a paced stream
REPLY = "an interpreter must also know both languages"  # part of the text of each whole reply


@dataclass(frozen=True, slots=True)
class Case:
    """What clients ask for. `workload` is what the provider does: `whole`, `paced` or `burst`. `size` is that of a
    request's body in bytes. With a `rate` the requests are sent at fixed times, else in a closed loop."""

    title: str
    workload: str
    connections: int
    size: int = 4096
    rate: int = 0
    client: str = "chat"

    @property
    def is_stream(self) -> bool:
        return self.workload != "whole"

    @property
    def unit(self) -> str:
        return "event" if self.is_stream else "request"


CASES = {
    "whole": Case("4 KB request", "whole", 16),
    "small": Case("1 KB request", "whole", 16, size=1024),
    "large": Case("200 KB request", "whole", 16, size=200_000),
    "paced": Case("paced stream", "paced", 32),
    "burst": Case("burst", "burst", 4),
    "rate": Case("800 requests a second", "whole", 32, rate=800),
    "responses": Case("paced stream for Responses", "paced", 32, client="responses"),
    "messages": Case("paced stream for Messages", "paced", 32, client="messages"),
}

_PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
_HEADERS = {"messages": "anthropic-version: 2023-06-01\r\n"}
_QUESTION = "Was heißt »dragoman«, und woher kommt das Wort? 翻译。"
_TOOLS = ("lookup", "translate", "compare")


def build_request(port: int, case: Case) -> bytes:
    """Build a request of a case's size. The messages have text outside ASCII; up to 1 KB there is one tool, above it
    there are three; a large request has many messages of about 1 KB."""
    turns, repeated, tools = (0, 1, 1) if case.size <= 1024 else (8, 1, 3)
    if case.size > 16_384:
        turns, repeated = case.size // 1024 // 2 * 2 - 2, 15
    text = " ".join([_QUESTION] * repeated)
    said = [{"role": "assistant" if turn % 2 else "user", "content": f"{turn}: {text}"} for turn in range(turns)]
    last = {"role": "user", "content": ""}
    messages = [{"role": "system", "content": "Answer briefly."}, *said, last]
    asked = _BUILDERS[case.client](messages, [_build_tool(name) for name in _TOOLS[:tools]])
    body = {"model": f"bench-{case.workload}", **asked, "temperature": 0.7, "stream": case.is_stream}
    last["content"] = "x" * max(case.size - len(encode(body)), 1)
    data = encode(body)
    head = f"POST {_PATHS[case.client]} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nuser-agent: bench\r\n"
    head += _HEADERS.get(case.client, "")
    return f"{head}accept: */*\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


def _build_chat(messages: list[dict[str, str]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {"messages": messages, "tools": tools, "max_tokens": 256}


def _build_responses(messages: list[dict[str, str]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    flat = [{"type": "function", **one["function"]} for one in tools]
    return {"input": messages, "tools": flat, "max_output_tokens": 256}


def _build_messages(messages: list[dict[str, str]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    system, *turns = messages
    schemas = [{**one["function"], "input_schema": one["function"]["parameters"]} for one in tools]
    own = [{key: value for key, value in one.items() if key != "parameters"} for one in schemas]
    return {"system": system["content"], "messages": turns, "tools": own, "max_tokens": 256}


_BUILDERS = {"chat": _build_chat, "responses": _build_responses, "messages": _build_messages}


def _build_tool(name: str) -> dict[str, Any]:
    word = {"type": "string", "description": "The word, in the language that it was found in."}
    parameters = {"type": "object", "properties": {"word": word, "limit": {"type": "integer"}}, "required": ["word"]}
    return {"type": "function", "function": {"name": name, "description": f"To {name}.", "parameters": parameters}}


def encode(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
