"""`dragoman demo`: what it prints works, and nothing of it stays."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.adapters.registry import NAMES
from dragoman.contract.fakes import FakeProvider
from dragoman.local_engine import embedded
from dragoman.proxy.cli import demo_process
from dragoman.proxy.cli.demo_process import Demo, describe_demo
from dragoman.proxy.server.lifecycle import StartError

from .conftest import MAIN


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process of the command, and what it printed when it had started."""
    command = [sys.executable, "-c", MAIN, "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            while not lines or not lines[-1].startswith("Ctrl-C"):
                lines.append(process.stdout.readline())
                assert lines[-1], "".join(lines) + (process.communicate()[1] or "")
            yield process, "".join(lines)
        finally:
            process.kill()


def test_what_it_prints_works_and_ctrl_c_ends_everything(tmp_path: Path) -> None:
    with running(tmp_path) as (process, said):
        url = re.search(r"listens on (\S+),", said)
        assert url is not None
        address, [body] = url[1], re.findall(r"-d '(.*)'", said)
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{address}/v1/chat/completions", body.encode(), headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            assert 'path="user"' in response.headers["x-dragoman-changes"]
            assert json.load(response)["choices"][0]["message"]["content"]
        [curl] = re.findall(r"(curl -si .*?'\n)", said, re.DOTALL)
        assert f"{address}/v1/chat/completions" in shlex.split(curl)
        [python] = re.findall(r"(uv run .*?'\n)", said, re.DOTALL)
        *_, script = shlex.split(python)
        answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
        assert answer.stdout.strip()
        with urllib.request.urlopen(f"{address}/", timeout=20) as page:
            assert page.headers["Content-Type"].startswith("text/html")
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=30)
        assert process.returncode == 0, log
        assert "Traceback" not in log
        with pytest.raises(OSError):
            urllib.request.urlopen(f"{address}/live", timeout=5)
    assert not list(tmp_path.iterdir()), "nothing is written"


async def test_every_dialect_has_a_model_and_bodies_are_shown() -> None:
    async with Demo(0) as demo:
        config = demo.proxy.config
        assert list(config.models) == [*NAMES, embedded.NAME]
        assert (config.server.inspect, config.store.kind, config.server.host) == ("bodies", "memory", "127.0.0.1")
        assert embedded.INSTALL not in describe_demo(demo)
        assert f"here it needs --base-url {demo.proxy.url}/v1\n" in describe_demo(demo)


async def test_without_the_extra_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "missing_libraries", lambda: ["onnxruntime"])
    async with Demo(0) as demo:
        assert embedded.NAME not in demo.proxy.config.models
        assert f"{embedded.NAME} is left out; to have it too: {embedded.INSTALL}\n" in describe_demo(demo)


async def test_the_usual_port_is_taken_only_if_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(demo_process, "_USUAL_PORT", taken.getsockname()[1])
        assert demo_process._find_port() == 0
    assert demo_process._find_port() == demo_process._USUAL_PORT


async def test_the_fakes_end_if_the_proxy_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FakeProvider] = []

    class Noted(FakeProvider):
        async def start(self) -> None:
            made.append(self)
            await super().start()

    monkeypatch.setattr(demo_process, "FakeProvider", Noted)
    monkeypatch.setattr(embedded, "missing_libraries", lambda: ["onnxruntime"])
    async with FakeProvider("openai") as taken:
        with pytest.raises(StartError, match="Stop the process that uses the address"):
            await Demo(taken.port).__aenter__()
    assert len(made) == len(NAMES)
    for fake in made:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", fake.port)) != 0
