"""The suite is light: its base installation has no engine, and a run loads no server, proxy or engine."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import requires

from packaging.requirements import Requirement

HEAVY = {
    "onnxruntime",
    "onnx",
    "numpy",
    "tokenizers",
    "llguidance",
    "jinja2",
    "litellm",
    "torch",
    "transformers",
    "openai",
}
NOT_FOR_THE_SUITE = HEAVY | {
    "aiohttp.web",
    "dragoman.contract.fakes",
    "dragoman.local_engine",
    "dragoman.proxy.config",
    "dragoman.proxy.server",
    "dragoman.proxy.upstreams",
    "orjson",
    "uvloop",
}
RUN = """
import sys
from dragoman.proxy.cli.main import main
for words in {commands}:
    sys.argv = ["dragoman", "contract", *words]
    try:
        main()
    except SystemExit as end:
        print("status:", end.code)
print("modules:", *sys.modules)
"""
ENDPOINT = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")
COMMANDS = [
    ("run", *ENDPOINT, "--only", "chat/text/plain"),
    ("run", *ENDPOINT, "--dry-run"),
    ("list",),
    ("checks",),
]


def test_base_installation_has_no_engine() -> None:
    needed = [Requirement(text) for text in requires("dragoman") or ()]
    base = {one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})}
    assert {"aiohttp", "jsonschema", "typer"} <= base
    assert not base & HEAVY


def test_commands_load_no_server_and_no_engine() -> None:
    code = RUN.format(commands=COMMANDS)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert re.findall("^status: (.*)", run.stdout, re.MULTILINE) == ["3", "0", "0", "0"], run.stdout + run.stderr
    modules = set(run.stdout.partition("modules:")[2].split())
    assert "dragoman.contract.commands" in modules, run.stderr
    assert not modules & NOT_FOR_THE_SUITE
