"""`dragoman tail`: files, pipes and a running proxy, in short lines."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dragoman.proxy.cli.main import app
from dragoman.proxy.cli.tail.sources import follow_file


def line(**fields: Any) -> str:
    event = {"timestamp": "12:01:07", "level": "info", "event": "exchange", "model": "fast", "target": "p/up"}
    return json.dumps({**event, "status": 200, "outcome": "ok", "duration_ms": 1200, **fields}) + "\n"


LOST = [{"action": "dropped", "weight": "loss", "reason": "r", "before": "seed"}]
LOG = "".join(
    (
        "dragoman listens on http://127.0.0.1:8080\n",
        line(tokens_in=312, tokens_out=88, changes=LOST),
        line(
            model="slow", key="ci", status=502, outcome="fault", fault="upstream_error", message="no", level="warning"
        ),
        line(model="slower", status=429, outcome="fault"),
        '{"timestamp": "12:01:08", "level": "warning", "event": "target_pauses", "target": "p/up"}\n',
        '{"timestamp": "12:01:09", "event": "refused", "method": "GET", "path": "/", "status": 503, "fault": "busy"}\n',
    )
)
ALL = [
    "dragoman listens on http://127.0.0.1:8080",
    "12:01:07 fast -> p 200 1.2 s 312+88 tok -seed",
    "12:01:07 slow -> p [ci] 502 1.2 s upstream_error: no",
    "12:01:07 slower -> p 429 1.2 s",
    "12:01:08 warning target_pauses target=p/up",
    "12:01:09 GET / 503 busy",
]


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["tail", *arguments], input=stdin)


@pytest.mark.parametrize("source", [(), ("-",), ("log",)])
def test_every_line_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log").write_text(LOG)
    result = run(*source, stdin=LOG)
    assert (result.exit_code, result.stdout.splitlines()) == (0, ALL)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--model", "fast"], [1]),
        (["--model", "slow*"], [2, 3]),
        (["--model", "fast", "--model", "slow"], [1, 2]),
        (["--status", "5xx"], [2, 5]),
        (["--status", "5xx", "--model", "slow"], [2]),
        (["--status", "503", "--key", "ci"], []),
        (["--status", "200", "--status", "429"], [1, 3]),
        (["--outcome", "fault"], [2, 3]),
        (["--outcome", "fault", "--key", "ci"], [2]),
        (["--losses"], [1]),
        (["--losses", "--outcome", "fault"], []),
    ],
)
def test_filters_leave_only_some_exchanges(options: list[str], shown: list[int]) -> None:
    assert run(*options, stdin=LOG).stdout.splitlines() == [ALL[number] for number in shown]


def test_odd_lines_are_shown_without_control_characters() -> None:
    result = run(stdin='[1]\n\n{"event": "x", "name": "\\u001b[2J"}\n\x1b[31mred\nlast')
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert result.stdout.splitlines()[0] == "[1]" and result.stdout.splitlines()[-1] == "last"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--status", "teapot"], "expected a status such as 429"),
        (["nowhere.log"], "cannot read nowhere.log: No such file"),
        (["http://127.0.0.1:1"], "nothing answers at http://127.0.0.1:1"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], text: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert text in result.stderr


def test_a_file_is_followed_also_when_another_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a\nbegun")
    with closing(follow_file(str(path), follow=True)) as lines:
        check_followed(path, lines)


def check_followed(path: Path, lines: Iterator[bytes]) -> None:
    assert next(lines) == b"a\n"
    with path.open("ab") as stream:
        stream.write(b" and ended\n")
    assert next(lines) == b"begun and ended\n"
    new = path.with_name("new")
    new.write_bytes(b"longer\n")
    os.replace(new, path)
    assert next(lines) == b"longer\n"
    path.write_bytes(b"d\n")  # emptied, then written to
    assert next(lines) == b"d\n"


class Events(BaseHTTPRequestHandler):
    """A page: its list of exchanges as events, for those who have the key."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != "Bearer admin-key":
            return self.send_error(401)
        self.send_response(200 if self.path == "/page/api/events" else 404)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        one = {"seq": 1, "began": 1_700_000_000.0, "model": "fast", "target": "p/up", "status": None, "key": None}
        done = {
            "status": 200,
            "duration_ms": 1200.0,
            "tokens_in": 3,
            "tokens_out": 4,
            "changes": {"form": 1, "loss": 2},
            "losses": [{"action": "dropped", "weight": "loss", "reason": "r", "before": "seed"}],
        }
        for name, data in (
            ("exchange", {**one, "outcome": "running"}),
            ("state", {"gauges": {}}),
            ("exchange", {**one, "outcome": "ok", **done}),
        ):
            self.wfile.write(f": ping\n\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode())
        return None

    def log_message(self, format: str, *arguments: object) -> None:
        """Write nothing."""


@pytest.fixture
def page() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Events)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_exchanges_of_a_running_proxy_are_shown_when_they_have_ended(page: str) -> None:
    result = run(page, "--admin-key", "admin-key", "--losses")
    assert result.exit_code == 0, result.stderr
    (shown,) = result.stdout.splitlines()
    assert shown.endswith(" fast -> p 200 1.2 s 3+4 tok -seed and 1 more")


def test_a_proxy_that_needs_a_key_says_so(page: str) -> None:
    result = run(page)
    assert result.exit_code == 2
    assert "DRAGOMAN_ADMIN_KEY" in result.stderr
