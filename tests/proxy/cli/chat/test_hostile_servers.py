"""`dragoman chat` and servers that answer with anything: nothing controls the terminal, and nothing is a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from typer.testing import CliRunner, Result

from dragoman.proxy.cli.main import app

CLEAR = "\x1b[2J\x1b]0;owned\x07\x9b31m"
DEEP = b"[" * 100_000

Ask = Callable[[int, bytes, bytes], Result]


@pytest.fixture
def ask() -> Iterator[Ask]:
    """Asks a server that lists its models with one body and answers with another one, which has the status."""
    servers: list[HTTPServer] = []

    def run(status: int, listing: bytes, answer: bytes) -> Result:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(200, listing)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self._reply(status, answer)

            def _reply(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Nothing."""

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return CliRunner().invoke(app, ["chat", "Hi", "--base-url", f"http://127.0.0.1:{server.server_port}/v1"])

    yield run
    for server in servers:
        server.shutdown()
        server.server_close()


def write_event(body: object) -> bytes:
    return b"data: %b\n\n" % json.dumps(body).encode()


def is_printable(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t" for char in text)


MODELS = json.dumps({"data": [{"id": "m"}]}).encode()
SAID = write_event({"choices": [{"delta": {"content": f"fine{CLEAR}\ud800"}}]})


@pytest.mark.parametrize(
    ("status", "listing", "answer", "shown"),
    [
        (200, MODELS, SAID + b"data: [DONE]\n\n", "fine[2J]0;owned31m\n"),
        (200, MODELS, write_event({"error": {"message": CLEAR}}), "error: [2J]0;owned31m"),
        (200, MODELS, write_event({"error": CLEAR}), "error: [2J]0;owned31m"),
        (200, MODELS, write_event({"error": None, "choices": [3, {"delta": []}]}) + b"data: [DONE]\n\n", "\n"),
        (200, MODELS, write_event({"choices": {"a": 1}}), "error: the answer was cut short"),
        (200, MODELS, b"data: " + DEEP + b"\n\n", "error: the server does not answer in JSON"),
        (500, MODELS, json.dumps({"error": {"message": CLEAR}}).encode(), "error: [2J]0;owned31m (status 500)"),
        (500, MODELS, DEEP, "error: the server answered with status 500; is http://127.0.0.1:"),
        (200, json.dumps({"data": [{"id": CLEAR}, {"id": 3}, 4, {"id": "b"}]}).encode(), b"", "the first of 2 models"),
        (200, json.dumps({"data": {"id": "m"}}).encode(), b"", "error: the server lists no model"),
        (200, DEEP, b"", "error: the server does not answer in JSON"),
    ],
)
def test_no_answer_controls_the_terminal(ask: Ask, status: int, listing: bytes, answer: bytes, shown: str) -> None:
    result = ask(status, listing, answer)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert shown in result.output
    assert is_printable(result.output)


@pytest.mark.parametrize("key", ["sk-canary\n-1234", "sk-canary-1234\r", "sk-canary 1234", "sk-canary-é"])
def test_a_key_that_no_header_can_hold_is_explained_and_not_shown(key: str) -> None:
    result = CliRunner().invoke(app, ["chat", "Hi", "--base-url", "http://127.0.0.1:9/v1", "--api-key", key])
    assert result.exit_code == 2
    assert "of the key is not allowed in an HTTP header" in result.stderr
    assert "canary" not in result.output
