"""The command line as a whole: help, version, exit statuses, colors."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dragoman import __version__

from .conftest import MAIN, Command, run_python

HEAVY = ("aiohttp", "pydantic", "rich", "ruamel", "jsonschema_rs", "structlog", "orjson", "asyncio")


@pytest.mark.parametrize("args", [("version",), ("--version",)])
def test_version_prints_the_version(args: tuple[str, ...], command: Command) -> None:
    result = command(*args, DRAGOMAN_VERSION="1.2.3")
    assert (result.exit_code, result.stdout) == (0, f"dragoman {__version__}\n")


def test_help_lists_the_commands(command: Command) -> None:
    result = command("--help")
    assert result.exit_code == 0
    for name in ("serve", "init", "check", "schema", "fake", "version"):
        assert f"\n  {name} " in result.stdout
        assert command(name, "--help").exit_code == 0


@pytest.mark.parametrize(
    "args", [(), ("nonsense",), ("serve", "--port", "x"), ("serve", "--port", "70000"), ("check", "--x")]
)
def test_wrong_usage_has_status_2_and_writes_to_stderr(args: tuple[str, ...], command: Command) -> None:
    result = command(*args)
    assert result.exit_code == 2
    assert result.stdout + result.stderr
    if args:
        assert result.stdout == ""


@pytest.mark.parametrize("name", ["translate", "explain", "call", "chaos", "contract run", "contract list"])
def test_no_help_shows_a_type_of_python(name: str, command: Command) -> None:
    result = command(*name.split(), "--help")
    assert result.exit_code == 0
    assert "list[" not in result.stdout


@pytest.mark.parametrize("module", ["dragoman", "dragoman.proxy.cli"])
def test_a_module_runs_the_command(module: str) -> None:
    run = run_python("-m", module, "--version")
    assert (run.returncode, run.stdout) == (0, f"dragoman {__version__}\n")


def test_help_loads_no_heavy_module() -> None:
    script = (
        "import sys\nfrom dragoman.proxy.cli.main import main\nsys.argv[1:] = ['--help']\n"
        f"try: main()\nfinally: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    run = run_python("-c", script)
    assert (run.returncode, run.stderr.strip()) == (0, "[]")


def test_the_command_runs_in_a_process_of_its_own(empty_folder: Path) -> None:
    (empty_folder / "bad.yaml").write_text("sever: 1\n")
    run = run_python("-c", MAIN, "check", "bad.yaml", DRAGOMAN_PORT="tcp://10.0.0.1:80")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith('bad.yaml:1:1: error[unknown-key]: unknown key "sever" in the file\n')
    assert "\x1b" not in run.stderr, "colors without a terminal"


def test_a_port_variable_of_kubernetes_is_ignored(empty_folder: Path) -> None:
    run = run_python("-c", MAIN, "serve", "--config", "none.yaml", DRAGOMAN_PORT="tcp://10.0.0.1:80")
    assert run.returncode == 2
    assert "none.yaml: error[no-file]" in run.stderr


def test_an_interrupted_command_has_status_130(empty_folder: Path) -> None:
    """`check` waits for a named pipe without a writer."""
    os.mkfifo(empty_folder / "pipe.yaml")
    unignored = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    script = f"{unignored}; {MAIN}"
    with subprocess.Popen([sys.executable, "-c", script, "check", "pipe.yaml"], stderr=subprocess.PIPE) as process:
        writer = open_for_writing(empty_folder / "pipe.yaml", process)
        try:
            assert interrupt(process) == 130
        finally:
            process.kill()
            os.close(writer)


def interrupt(process: subprocess.Popen[bytes]) -> int:
    """Interrupt the process, and return its status. Python does not handle a signal that arrives just before a read
    blocks until the read ends, so further signals follow."""
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(1)
    pytest.fail("twenty interrupts did not end it")


def open_for_writing(pipe: Path, process: subprocess.Popen[bytes]) -> int:
    """Open the pipe's writing end, as soon as the process has opened the reading end."""
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # there is no reader yet
            time.sleep(0.01)
    pytest.fail(f"the command never opened the pipe: status {process.poll()}")


@pytest.mark.parametrize(("no_color", "colored"), [(None, True), ("1", False)])
def test_colors_appear_on_a_terminal_unless_no_color_is_set(
    no_color: str | None, colored: bool, empty_folder: Path
) -> None:
    (empty_folder / "bad.yaml").write_text("sever: 1\n")
    master, slave = os.openpty()
    shown = bytearray()

    def drain() -> None:
        while chunk := _read(master):
            shown.extend(chunk)

    reader = threading.Thread(target=drain)
    reader.start()
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    try:
        subprocess.run(
            [sys.executable, "-c", MAIN, "check", "bad.yaml"],
            stderr=slave, stdout=subprocess.DEVNULL, timeout=60, check=False,
            env=env | ({"NO_COLOR": no_color} if no_color else {}),
        )  # fmt: skip
    finally:
        os.close(slave)
        reader.join(10)
        os.close(master)
    assert b"unknown-key" in shown
    assert (b"\x1b[1;31m" in shown) is colored


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux: the other side is closed
        return b""


def test_a_closed_standard_error_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "dragoman.yaml").write_text("servers: {}")
    command = ["sh", "-c", 'exec "$0" "$@" 2>&-', sys.executable, "-c", MAIN, "check", str(tmp_path / "dragoman.yaml")]
    assert subprocess.run(command, timeout=60, check=False).returncode == 2


def test_the_list_of_commands_has_whole_sentences(command: Command) -> None:
    assert "..." not in command("--help", COLUMNS="80").stdout.partition("Commands:")[2]
