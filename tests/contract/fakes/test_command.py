"""The command that runs a fake in its own process."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import urllib.request

import pytest
from ruamel.yaml import YAML

from dragoman.contract.fakes import FakeProvider, describe_fake
from dragoman.proxy.config.models import Config
from tests.dialects import DIALECTS

PROGRAM = (
    "from dragoman.contract.fakes import FakeProvider, describe_fake, run_until_signal\n"
    "run_until_signal(FakeProvider('mindie', behaviour='length'), describe_fake, lambda text: print(text, flush=True))"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_fake_runs_until_a_signal(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split(" at ")[1].split(",")[0]
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello"}]}).encode()
        with urllib.request.urlopen(f"{address}/v1/chat/completions", data=body, timeout=20) as response:
            assert json.load(response)["choices"][0]["finish_reason"] == "length"
        process.send_signal(number)
        assert process.wait(20) == 0


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_printed_examples_work(dialect: str) -> None:
    async with FakeProvider(dialect, api_key=None if dialect == "mindie" else "secret") as fake:
        text = describe_fake(fake)
        command = text[text.index("curl") : text.index("\n\ndragoman.yaml")]
        process = await asyncio.create_subprocess_exec("bash", "-c", f"{command} -sS", stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        end = b'data: {"type":"message_stop"}\n\n' if dialect == "anthropic" else b"data: [DONE]\n\n"
        assert process.returncode == 0 and output.endswith(end), output
        block = text[text.index("providers:") : text.index("\n\nA last user message")]
        config = Config.from_values(YAML(typ="safe").load(block))
        assert config.providers[dialect].base_url == fake.base_url and "fake" in config.models
