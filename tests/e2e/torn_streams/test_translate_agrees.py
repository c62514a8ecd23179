"""`dragoman translate` and `dragoman serve` make the same of a stream, however it is torn."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

from dragoman.proxy.cli.main import app

from .served import ServedProxy, model_of, open_proxy, provider_of, write_request
from .streams import PAIRS, Pair, TornStream, recorded_streams, torn_streams

_ID = re.compile(rb"[0-9a-f]{44}|[0-9a-f]{32}")
_TIME = re.compile(rb'"(created|created_at|completed_at)": ?[0-9.]+')
_FAULT = re.compile(r"^  kind: (\w+), the \w+'s fault(?:, code (\w+))?$", re.MULTILINE)
_STATUS = re.compile(r"^  the client gets: status (\d+)\n(.*)\Z", re.MULTILINE | re.DOTALL)


class Seen(NamedTuple):
    """The end of a stream: `kind` and `code` of the fault, None if it is complete. `data` is what the client gets, a
    stream as bytes and an error as JSON, without ids and times. The path of a fault is in it."""

    kind: str | None
    code: str | None
    status: int
    data: Any
    is_broken: bool


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def proxy(runner: asyncio.Runner) -> Iterator[ServedProxy]:
    opening = open_proxy()
    yield runner.run(opening.__aenter__())
    runner.run(opening.__aexit__(None, None, None))


def serve(stream: TornStream, proxy: ServedProxy, runner: asyncio.Runner) -> Seen:
    answer = runner.run(proxy.ask(stream))
    line, name = answer.line, provider_of(stream.pair.provider)
    data = _strip(answer.data.replace(f"{name}: ".encode(), b"provider: "))
    body = json.loads(data) if answer.status != 200 else data
    return Seen(line.get("fault_kind"), line.get("fault"), answer.status, body, answer.is_broken)


def translate(stream: TornStream, folder: Path) -> Seen:
    client, provider = stream.pair
    request = folder / "request.json"
    request.write_text(json.dumps(write_request(stream)), "utf-8")
    options = ["--model", model_of(provider, stream.policy), "--policy", f"replies={stream.policy}", "--side", "stream"]
    options += ["--cut"] if stream.is_cut else []
    options += ["--policy", "emulate_completions=true", "--request", str(request)]
    result = CliRunner().invoke(
        app, ["translate", "--from", str(provider), "--to", str(client), *options], input=stream.data
    )
    fault, whole = _FAULT.search(result.stderr), _STATUS.search(result.stderr)
    assert result.exit_code == (fault is not None), result.output
    kind, code = (fault[1], fault[2] or fault[1]) if fault else (None, None)
    is_broken = "then the proxy breaks the client's connection" in result.stderr
    if whole is None:
        return Seen(kind, code, 200, _strip(result.stdout_bytes), is_broken)
    assert result.stdout_bytes == b""
    return Seen(kind, code, int(whole[1]), json.loads(_strip(whole[2].encode())), is_broken)


def _strip(data: bytes) -> bytes:
    return _TIME.sub(rb'"\1":0', _ID.sub(b"ID", data))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.client}<-{pair.provider}".replace("/", "."))
def test_both_make_the_same_of_a_recorded_stream(
    pair: Pair, proxy: ServedProxy, runner: asyncio.Runner, tmp_path: Path
) -> None:
    streams = [TornStream(pair, "repair", data) for data in recorded_streams(pair.provider)]
    served = [serve(stream, proxy, runner) for stream in streams]
    assert [translate(stream, tmp_path) for stream in streams] == served
    assert any(seen.kind is None for seen in served), "none of them is complete: are the requests at fault?"


def test_both_make_the_same_of_a_torn_stream(proxy: ServedProxy, runner: asyncio.Runner, tmp_path: Path) -> None:
    @settings(derandomize=True)
    @given(stream=torn_streams())
    def agree(stream: TornStream) -> None:
        assert translate(stream, tmp_path) == serve(stream, proxy, runner)

    agree()
