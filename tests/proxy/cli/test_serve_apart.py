"""`dragoman serve` as two processes: whatever happens to one, the other ends as a single one would."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.proxy.cli import configuration_source
from dragoman.proxy.cli.configuration_source import ConfigurationSource
from dragoman.proxy.config.problems import ConfigErrors
from tests.ports import find_free_port

from .conftest import GOOD, MAIN, run_python
from .test_main import interrupt, open_for_writing

SERVE = ("-c", MAIN, "serve")
ON_ONE_CORE = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"


@pytest.mark.parametrize("script", [MAIN, f"{ON_ONE_CORE}; {MAIN}"])
def test_it_serves_on_any_number_of_cores(script: str, empty_folder: Path) -> None:
    (empty_folder / "dragoman.yaml").write_text("server: {port: 0, drain: {delay: 1ms}}\nstore: {kind: none}\n" + GOOD)
    with subprocess.Popen([sys.executable, "-c", script, "serve"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline().startswith("dragoman listens on http://127.0.0.1:")
            while not process.stderr.readline().startswith("responses are not stored"):
                assert process.poll() is None
            assert list_children(process.pid) == [], "the reader has not ended"
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


def list_children(process: int) -> list[str]:
    """The process ids of what a process has started, zombies included."""
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


def test_warnings_that_cannot_be_printed_are_no_reason_not_to_serve(empty_folder: Path) -> None:
    """As with a log on a full disk."""
    port = find_free_port()
    settings = f"server: {{port: {port}, drain: {{delay: 1ms}}}}\nstore: {{kind: none}}\n"
    warned = GOOD.replace("/v1", "")
    assert warned != GOOD
    (empty_folder / "dragoman.yaml").write_text(settings + warned)
    with open("/dev/full", "wb") as full, subprocess.Popen([sys.executable, *SERVE], stderr=full) as process:
        try:
            wait_for_port(port, process)
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_a_reload_that_is_asked_for_too_early_comes_later(empty_folder: Path, seconds: float) -> None:
    """SIGHUP ends a process that does not expect it."""
    (empty_folder / "dragoman.yaml").write_text("server: {port: 0, drain: {delay: 1ms}}\nstore: {kind: none}\n" + GOOD)
    script = f"import sys; print('begun', flush=True); {MAIN}"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script, "serve"], text=True, **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            assert process.stdout.readline() == "begun\n"
            wait_for_child(process)
            time.sleep(seconds)
            process.send_signal(signal.SIGHUP)
            assert any('"event":"reloaded"' in line for line in process.stderr)
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


def wait_for_child(process: subprocess.Popen[str]) -> None:
    """Wait until it has begun to read its configuration."""
    while process.poll() is None and not list_children(process.pid):
        time.sleep(0.001)


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise AssertionError(f"it ended with status {process.returncode}")


def test_warnings_and_errors_are_printed_once(empty_folder: Path) -> None:
    (empty_folder / "dragoman.yaml").write_text("sever: {}\n" + GOOD.replace("/v1", ""))
    run = run_python(*SERVE)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("error[unknown-key]") == 1
    assert run.stderr.endswith("dragoman.yaml: 1 error, 1 warning\n")


def test_help_has_status_0(empty_folder: Path) -> None:
    run = run_python(*SERVE, "--help")
    assert (run.returncode, run.stderr) == (0, "")
    assert "Serve the configured models." in run.stdout


def test_a_closed_standard_output_changes_nothing(empty_folder: Path) -> None:
    (empty_folder / "dragoman.yaml").write_text("sever: {}\n")
    words = [sys.executable, *SERVE]
    run = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], stderr=subprocess.PIPE, text=True, timeout=60)
    assert run.returncode == 2
    assert "error[unknown-key]" in run.stderr


@pytest.mark.parametrize(
    ("failure", "status", "text"),
    [
        ("raise ValueError('unexpected')", 1, "ValueError: unexpected"),
        ("import os; os.kill(os.getpid(), 9)", 2, "error: signal 9 ended the process that reads the configuration"),
    ],
)
def test_a_reader_that_fails_says_why(failure: str, status: int, text: str, empty_folder: Path) -> None:
    (empty_folder / "dragoman.yaml").write_text(GOOD)
    script = (
        "from dragoman.proxy.cli import configuration_source\n"
        f"def read(*args):\n    {failure}\n"
        f"configuration_source.ConfigurationSource.read = read\n{MAIN}"
    )
    run = run_python("-c", script, "serve")
    assert run.returncode == status
    assert text in run.stderr


def test_a_reload_that_cannot_read_says_why(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration_source, "COMMAND", (sys.executable, "-c", "raise ValueError('unexpected')"))
    source = ConfigurationSource(empty_folder / "dragoman.yaml", None, False, None, None)
    with pytest.raises(RuntimeError, match=r"the configuration could not be read: (.|\n)*ValueError: unexpected"):
        source.read_again()


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        ("import time; time.sleep(60)", "pipe.yaml: error.unreadable.: reading it took more than 0.1 s"),
        ("import os; os.kill(os.getpid(), 9)", "pipe.yaml: error.unreadable.: signal 9 ended the process"),
    ],
)
def test_a_reload_whose_reader_is_ended_says_why(failure: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration_source, "COMMAND", (sys.executable, "-c", failure))
    monkeypatch.setattr(configuration_source, "LONGEST_READ", 0.1 if "sleep" in failure else 60.0)
    with pytest.raises(ConfigErrors, match=text):
        ConfigurationSource(Path("pipe.yaml"), None, False, None, None).read_again()


def test_an_interrupt_ends_both(empty_folder: Path) -> None:
    """The reader waits for a named pipe without a writer."""
    os.mkfifo(empty_folder / "pipe.yaml")
    unignored = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    words = (sys.executable, "-c", f"{unignored}; {MAIN}", "serve", "--config", "pipe.yaml")
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        writer = open_for_writing(empty_folder / "pipe.yaml", process)
        try:
            assert interrupt(process) == 130
            wait_until_broken(writer)
        finally:
            process.kill()
            os.close(writer)


def wait_until_broken(writer: int) -> None:
    """Wait until nobody reads the pipe any more."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.write(writer, b"\n")
        except BrokenPipeError:
            return
        time.sleep(0.01)
    pytest.fail("the reader still runs")


def test_the_files_that_a_wrong_configuration_names_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dragoman.yaml").write_text('keys: [{name: a, key: "${file:late}"}]\nmodels: {}\n')
    with pytest.raises(ConfigErrors) as caught:
        ConfigurationSource(None, None, False, None, None).read_again()
    assert caught.value.files == (Path("late"),)
