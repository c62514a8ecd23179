#!/usr/bin/env python3
"""The first five minutes, by the commands of the README, timed: from a clone to the first answer, to an own provider
(a fake one that wants a key), to why a field was dropped.

    python3 .ci/story.py [--empty-cache]

Needs git and uv. It works in a throw-away folder; `--empty-cache` also begins with an empty cache of uv.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
KEY = "sk-story"
PATIENCE = 600.0  # seconds: an empty cache is filled from the network


class Story:
    """A clone, and the time since the story began."""

    def __init__(self, folder: Path, empty_cache: bool) -> None:
        self.clone = folder / "dragoman"
        kept = ("PATH", "LANG", "TMPDIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE")
        self.env = {name: value for name, value in os.environ.items() if name in kept or name.startswith("UV_")}
        for name in ("UV_PROJECT_ENVIRONMENT", "UV_NO_SYNC", "UV_PYTHON_DOWNLOADS"):
            self.env.pop(name, None)
        self.env |= {"HOME": os.environ.get("HOME", str(folder)), "XDG_STATE_HOME": str(folder / "state")}
        if empty_cache:
            self.env["UV_CACHE_DIR"] = str(folder / "cache")
        self.began = time.monotonic()

    def tell(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def run(self, command: str, **env: str) -> str:
        """Run a command of the README, and return what it printed."""
        run = subprocess.run(
            shlex.split(command), cwd=self.clone, env=self.env | env, capture_output=True, text=True, timeout=PATIENCE
        )
        if run.returncode:
            raise SystemExit(f"story: {command} ended with status {run.returncode}\n{run.stdout}{run.stderr}")
        return run.stdout

    @contextmanager
    def running(self, command: str, port: int, **env: str) -> Iterator[None]:
        """A server of the README, from when it listens on `port`; Ctrl-C ends it."""
        process = subprocess.Popen(
            shlex.split(command), cwd=self.clone, env=self.env | env, stdout=subprocess.DEVNULL, start_new_session=True
        )
        try:
            self._wait(process, port)
            yield
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(30)

    def _wait(self, process: subprocess.Popen[bytes], port: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"story: nothing listens on port {port}: {process.args!r}")


def shown(command: str) -> str:
    """The command, which the README must show."""
    if f"uv run dragoman {command}" not in README:
        raise SystemExit(f"story: the README does not show: uv run dragoman {command}")
    return f"uv run dragoman {command}"


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def tell_story(story: Story) -> None:
    question = 'chat "Why do I need dragoman?"'
    port, fake = find_free_port(), find_free_port()
    own = {"DRAGOMAN_PORT": str(port), "DRAGOMAN_BASE_URL": f"http://127.0.0.1:{port}/v1"}
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(story.clone)], check=True)
    story.tell("cloned")
    with story.running(shown("demo"), port, **own):
        story.tell("the demo listens")
        answer = story.run(shown(question), **own)
        if answer not in README:
            raise SystemExit(f"story: the README does not show this answer: {answer}")
        story.tell(f"first answer: {answer.strip()}")
    variables = {"DATABRICKS_HOST": f"http://127.0.0.1:{fake}", "DATABRICKS_TOKEN": KEY}
    with story.running(f"uv run dragoman fake databricks --port {fake} --api-key {KEY}", fake):
        print(story.run(shown("init"), **variables), end="")
        story.run("uv run dragoman check", **variables)
        story.tell("an own provider is configured, and the file passes the check")
        with story.running(shown("serve"), port, **own, **variables):
            answer = story.run("uv run dragoman chat Hello", **own)
            story.tell(f"it answers: {answer.strip()}")
    [request] = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
    (story.clone / "request.json").write_text(request, "utf-8")
    receipt = story.run(shown("explain --model NAME request.json").replace("NAME", "fake-model"), **variables)
    [line] = [line for line in receipt.splitlines() if "dropped" in line and "user" in line]
    story.tell(f"why a field is dropped: {' '.join(line.split())}")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="dragoman-story-"))
    try:
        tell_story(Story(folder, "--empty-cache" in sys.argv[1:]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
