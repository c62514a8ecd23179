"""The limit on open files, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import resource
from dragoman.proxy.server.open_files import raise_file_limit
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(raise_file_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""
PROXY = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (200, {hard}))
from dragoman.proxy.cli.server_process import run
from dragoman.proxy.config.models import Config
config = Config.from_values({{"server": {{"port": 0}}, "store": {{"kind": "none"}}, "models": {{}}, "providers": {{}}}})
raise SystemExit(run(config))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [(64, 4000, "4000 4000 4000"), (64, 64, "64 64 64"), (3000, 3000, "3000 3000 3000")],
)
def test_the_soft_limit_is_raised_to_the_hard_one(soft: int, hard: int, expected: str) -> None:
    script = SCRIPT.format(soft=soft, hard=hard)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == expected


def test_a_proxy_says_that_it_may_open_too_few_files() -> None:
    script = PROXY.format(hard=200)
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = next(line for line in process.stderr if line.startswith("warning: "))
        finally:
            process.terminate()
    assert "the system allows 200 open files (ulimit -n), fewer than the 10000 connections" in said
