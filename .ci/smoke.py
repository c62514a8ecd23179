"""Smoke test of an installed dragoman: `python smoke.py PATH_TO_DRAGOMAN`.

Starts `dragoman fake openai` and `dragoman serve` in front of it, makes one chat call and one streamed one, checks both
answers and ends both processes. Standard library only, so that it runs in an environment that holds just the wheel.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 30.0  # seconds, for a server to start and for a call to be answered


def main() -> None:
    dragoman = sys.argv[1]
    fake, proxy = free_port(), free_port()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = folder / "dragoman.yaml"
        config.write_text(configuration(fake, proxy))
        stack.enter_context(running(fake, dragoman, "fake", "openai", "--port", str(fake)))
        stack.enter_context(running(proxy, dragoman, "serve", "--config", str(config)))
        check_chat(proxy)
        check_stream(proxy)
    print("smoke: one chat call and one stream through the installed proxy, both as they should be")


def configuration(fake: int, proxy: int) -> str:
    return f"""\
server: {{host: 127.0.0.1, port: {proxy}}}
store: {{path: responses.db}}
providers:
  fake: {{dialect: openai, base_url: "http://127.0.0.1:{fake}/v1", api_key: sk-smoke}}
models:
  smoke: {{targets: [{{provider: fake, model: fake-model}}]}}
"""


def check_chat(port: int) -> None:
    reply = json.loads(chat(port, stream=False))
    assert reply["object"] == "chat.completion", reply
    assert reply["choices"][0]["message"]["role"] == "assistant", reply
    assert reply["choices"][0]["finish_reason"], reply


def check_stream(port: int) -> None:
    events = [part.removeprefix("data: ") for part in chat(port, stream=True).decode().split("\n\n") if part]
    assert events[-1] == "[DONE]", events[-1]
    chunks = [json.loads(event) for event in events[:-1]]
    assert all(chunk["object"] == "chat.completion.chunk" for chunk in chunks), chunks
    assert any(choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]), chunks


def chat(port: int, *, stream: bool) -> bytes:
    body: dict[str, Any] = {"model": "smoke", "messages": [{"role": "user", "content": "Say hello."}], "stream": stream}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE) as answer:
        data: bytes = answer.read()
        return data


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(port: int, *command: str) -> Iterator[None]:
    """The command as a process that listens on `port` by the time the body runs, ended after it."""
    process = subprocess.Popen(command)
    try:
        wait_for(port, process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"smoke: {process.args!r} ended with status {process.returncode} instead of listening")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"smoke: nothing listens on port {port} after {PATIENCE:.0f} s: {process.args!r}")


if __name__ == "__main__":
    main()
