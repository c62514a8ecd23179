"""Helpers for tests of runs without a network: a transport with scripted responses, and small case files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from dragoman.contract.case_files import read_case_file
from dragoman.contract.exchange import Chunk, Request, Response, UnreachableError
from dragoman.contract.json_types import JsonValue
from dragoman.contract.model import Case
from dragoman.contract.runner import CaseRunner, DrivenUpstream
from dragoman.contract.target import Target
from dragoman.contract.verdicts import CaseResult

__all__ = ["SECOND_STEP", "TARGET", "ScriptedTransport", "make_response", "run_cases", "write_case"]

TARGET = Target("http://x/v1", "openai", "m", key="secret")
SECOND_STEP = "      - *step\n"
_FILE = """
protocol: chat
source: a reference
cases:
  - id: chat/text/{name}
    title: it answers
    level: {level}
    dialects: [openai]
    max_tokens: 10
    {more}
    steps:
      - &step
        request: {{body: {{{body}}}}}
        expect: {{status: {status}, {expect}}}
"""


class ScriptedTransport:
    """A transport that answers from a list; the last response serves all later requests."""

    def __init__(self, *responses: Response | UnreachableError) -> None:
        self.responses = list(responses)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        response = self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]
        if isinstance(response, UnreachableError):
            raise response
        return response

    async def close(self) -> None: ...


def make_response(status: int = 200, **body: JsonValue) -> Response:
    return Response(status, (("content-type", "application/json"),), (Chunk(0.0, json.dumps(body).encode()),))


def write_case(
    folder: Path,
    name: str = "one",
    *,
    level: str = "MUST",
    expect: str = "",
    more: str = "",
    body: str = "messages: []",
    end: str = "",
    status: int = 200,
) -> Case:
    """Write a case file and read its case."""
    file = folder / f"{name}.yaml"
    file.write_text(
        _FILE.format(name=name, level=level, expect=expect, more=more, body=body, status=status) + end, "utf-8"
    )
    return read_case_file(file)[0]


async def run_cases(
    transport: ScriptedTransport,
    cases: Sequence[Case],
    *,
    upstream: DrivenUpstream | None = None,
    budget: int | None = None,
    concurrency: int = 1,
) -> list[CaseResult]:
    return await CaseRunner(TARGET, transport, upstream, budget, concurrency).run_cases(cases)
