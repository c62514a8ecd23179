"""Wrong usage is status 2, says what to do, and leaves standard output empty."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from dragoman.local_engine import embedded

Run = Callable[..., Result]

PAIR = ("translate", "--from", "openai/chat", "--to", "mindie/chat")
SCRIPT = "from dragoman.proxy.cli.main import main; main()"
GOOD = 'providers: {p: {dialect: openai, base_url: "http://127.0.0.1:1/v1"}}\nmodels: {m: {targets: [{provider: p}]}}\n'

MISUSES = [
    (("translate", "--to", "mindie/chat"), "--from"),
    (
        ("translate", "--from", "opena/chat", "--to", "x/y"),
        '--from: there is no dialect "opena"; did you mean "openai"?',
    ),
    (("translate", "--from", "zzz/chat", "--to", "x/y"), "there are: openai, databricks, azure, mindie"),
    (("translate", "--from", "openai", "--to", "x/y"), '--from: "openai" names no protocol; write openai/chat'),
    (
        ("translate", "--from", "azure/chat", "--to", "openai/images"),
        '--to: there is no protocol "images"; there are: openai/chat',
    ),
    (
        ("translate", "--from", "azure/embeddings", "--to", "openai/chat"),
        "there is no translation between embeddings and chat",
    ),
    ((*PAIR, "--profile", "native"), '--from: openai has no profile "native"; it has: documented, actual'),
    ((*PAIR, "--to-profile", "newest"), "newest"),
    ((*PAIR, "--side", "requests"), "requests"),
    ((*PAIR, "--status", "99"), "--status"),
    ((*PAIR, "--policy", "replies"), '--policy: "replies" is not a pair; write name=value'),
    ((*PAIR, "--policy", "replys=off"), '--policy: there is no policy "replys"; did you mean "replies"?'),
    ((*PAIR, "--policy", "replies=on"), '--policy: replies cannot be "on"; it is one of: off, report, repair, strict'),
    ((*PAIR, "--query", "x"), '--query: "x" is not a pair'),
    ((*PAIR, "--header", "x"), '--header: "x" is not a header; write "name: value" in visible ASCII'),
    ((*PAIR, "--header", "x: \u00fc"), "visible ASCII"),
    ((*PAIR, "--header", ": x"), "is not a header"),
    ((*PAIR, "nothing.json"), "cannot read nothing.json: No such file or directory"),
    ((*PAIR, "."), "cannot read .: Is a directory"),
    (
        ("validate", "openai/chat/reqest"),
        'there is no payload "openai/chat/reqest"; did you mean "openai/chat/request"?',
    ),
    (("validate", "hub/chat/stream"), 'there is no payload "hub/chat/stream"'),
    (("validate", "openai"), "there is no payload"),
    (("validate", "azure/chat/reply", "--profile", "native"), '--profile: azure has no profile "native"'),
    (("validate", "hub/chat/reply", "--profile", "actual"), '--profile: hub has no profile "actual"'),
    (("explain", "--config", "none.yaml"), "none.yaml: error[no-file]"),
    (("explain", "--config", "bad.yaml"), 'unknown key "sever"'),
    (("explain", "--message", "x"), "there is nothing to serve"),
    (("explain", "--config", "good.yaml", "--message", "x", "f.json"), "both FILE and --message are given"),
    (
        ("explain", "--config", "good.yaml", "--message", "x", "--key", "k"),
        '--key: there is no key "k"; there are: none',
    ),
    (("explain", "--config", "good.yaml", "--message", "x", "--from", "openai/x"), "there is no protocol"),
    (("explain", "--config", "tls.yaml", "--message", "x", "--model", "m"), "a provider's files cannot be used"),
    (("call", "--config", "none.yaml"), "none.yaml: error[no-file]"),
    (("call", "--config", "good.yaml", "--message", "x", "--key", "k"), '--key: there is no key "k"'),
    (("call", "--config", "good.yaml", "nothing.json"), "cannot read nothing.json"),
]


@pytest.mark.parametrize(("args", "told"), MISUSES, ids=lambda value: " ".join(value)[:60] if value else "")
def test_misuse(args: tuple[str, ...], told: str, run: Run, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "can_answer", lambda: False)
    (elsewhere / "bad.yaml").write_text("sever: 1\n")
    (elsewhere / "good.yaml").write_text(GOOD)
    (elsewhere / "tls.yaml").write_text(GOOD.replace('v1"', 'v1", tls: {ca: bad.yaml}'))
    result = run(*args, stdin='{"messages": []}')
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


@pytest.mark.parametrize("command", ["translate", "validate", "explain", "call"])
def test_help(command: str, run: Run) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Example: dragoman " + command in result.stdout
    assert f"\n  {command} " in run("--help").stdout


def terminal(*args: str) -> tuple[int, bytes]:
    """The status of a command whose standard streams are a terminal, and what the terminal shows."""
    master, slave = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm-256color"}
    try:
        with subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *args], stdin=slave, stdout=slave, stderr=slave, env=env
        ) as process:
            os.close(slave)
            shown = b"".join(iter(lambda: _read(master), b""))
        return process.returncode, shown
    finally:
        os.close(master)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux says so when the other side is closed
        return b""


def test_terminal_as_input_is_refused() -> None:
    code, shown = terminal(*PAIR)
    assert code == 2
    assert b"no FILE is given, and standard input is a terminal: name a file, or pipe the payload in" in shown


def test_colours_on_a_terminal(fixtures: Path) -> None:
    code, shown = terminal(*PAIR, str(fixtures / "openai" / "request.json"))
    assert code == 0
    assert b"\x1b[" in shown
    assert "Grüß Gott".encode() in shown
    code, shown = terminal("validate", "openai/chat/reply", str(fixtures / "openai" / "request.json"))
    assert code == 1
    assert b"\x1b[1;31mid is required\x1b[0m" in shown


def test_no_colours_elsewhere(fixtures: Path, run: Run) -> None:
    result = run(*PAIR, fixtures / "openai" / "request.json")
    assert "\x1b" not in result.output


def test_a_narrow_encoding_gets_escapes(fixtures: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", SCRIPT, "validate", "openai/chat/event", "-"]
    run = subprocess.run(command, input='"ü"'.encode(), capture_output=True, env=env, check=False)
    assert (run.returncode, run.stdout.splitlines()[1]) == (1, b'  value: "\\xfc"')
    command = [sys.executable, "-c", SCRIPT, *PAIR, str(fixtures / "openai" / "request.json")]
    run = subprocess.run(command, capture_output=True, env=env, check=False)
    assert "Grüß Gott".encode() in run.stdout, "payloads are UTF-8 whatever the terminal"


def test_a_payload_cannot_steer_the_terminal(run: Run) -> None:
    result = run(*PAIR, "--policy", "extra_parameters=drop", stdin='{"model": "m", "messages": [], "\\u001b[2J": 1}')
    assert "\x1b" not in result.output
    result = run("validate", "openai/chat/stream", stdin=b"\x1b[2J\n\n")
    assert result.exit_code == 1
    assert "\x1b" not in result.output
