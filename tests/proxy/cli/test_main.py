"""The command line: what each command does, says and returns."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import dragoman
from dragoman import schemas
from dragoman.contract import fakes
from dragoman.local_engine import embedded
from dragoman.proxy.cli.main import app
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.starter import STARTER
from dragoman.proxy.server import lifecycle as serve

GOOD = 'providers: {p: {dialect: openai, base_url: "http://127.0.0.1:1/v1"}}\nmodels: {m: {targets: [{provider: p}]}}\n'
HEAVY = ("aiohttp", "pydantic", "rich", "ruamel", "jsonschema_rs", "orjson", "asyncio")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and an environment that says nothing to dragoman."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("DRAGOMAN_", "OPENAI_", "DATABRICKS_", "AZURE_")):
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Config, dict[str, Any]]]]:
    """What the server was started with; it returns 0 at once."""
    calls: list[tuple[Config, dict[str, Any]]] = []

    def run(config: Config, **options: Any) -> int:
        calls.append((config, options))
        return 0

    monkeypatch.setattr(serve, "run", run)
    yield calls


def dragoman_(*args: str, **env: str) -> Result:
    return CliRunner().invoke(app, list(args), env=env)


@pytest.mark.parametrize("args", [("version",), ("--version",)])
def test_version(args: tuple[str, ...]) -> None:
    result = dragoman_(*args, DRAGOMAN_VERSION="1.2.3")
    assert (result.exit_code, result.stdout) == (0, f"dragoman {dragoman.__version__}\n")


def test_help_lists_the_commands() -> None:
    result = dragoman_("--help")
    assert result.exit_code == 0
    for command in ("serve", "init", "check", "schema", "fake", "version"):
        assert f"\n  {command} " in result.stdout
        assert dragoman_(command, "--help").exit_code == 0


@pytest.mark.parametrize(
    "args", [(), ("nonsense",), ("serve", "--port", "x"), ("serve", "--port", "70000"), ("check", "--x")]
)
def test_wrong_usage_is_status_2_on_stderr(args: tuple[str, ...]) -> None:
    result = dragoman_(*args)
    assert result.exit_code == 2
    assert result.stdout + result.stderr
    if args:
        assert result.stdout == ""


def test_init_writes_once(elsewhere: Path) -> None:
    assert dragoman_("init").exit_code == 0
    assert (elsewhere / "dragoman.yaml").read_text("utf-8") == STARTER
    (elsewhere / "dragoman.yaml").write_text("mine")
    again = dragoman_("init")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "--force" in again.stderr
    assert (elsewhere / "dragoman.yaml").read_text("utf-8") == "mine"
    assert dragoman_("init", "--force").exit_code == 0
    assert (elsewhere / "dragoman.yaml").read_text("utf-8") == STARTER


def test_init_says_why_it_cannot_write(elsewhere: Path) -> None:
    result = dragoman_("init", "no/such/folder.yaml")
    assert result.exit_code == 2
    assert "cannot write no/such/folder.yaml: No such file or directory" in result.stderr


def test_what_init_writes_passes_check() -> None:
    dragoman_("init")
    assert dragoman_("check", OPENAI_API_KEY="sk-x").exit_code == 0
    without = dragoman_("check")
    assert without.exit_code == 2
    assert "the variable OPENAI_API_KEY is not set" in without.stderr


def test_check_takes_the_file_and_the_variables_from_the_environment(elsewhere: Path) -> None:
    (elsewhere / "other.yaml").write_text(GOOD + 'keys: [{name: a, key: "${KEY}"}]\n')
    (elsewhere / "vars").write_text("KEY=from-file\n")
    assert dragoman_("check", DRAGOMAN_CONFIG="other.yaml").exit_code == 2
    result = dragoman_("check", DRAGOMAN_CONFIG="other.yaml", DRAGOMAN_ENV_FILE="vars")
    assert (result.exit_code, result.stdout) == (0, "other.yaml: 1 provider, 1 model, no errors\n")


def test_check_reports_a_bad_env_file(elsewhere: Path) -> None:
    (elsewhere / "vars").write_text("what is this\n")
    result = dragoman_("check", "--env-file", "vars")
    assert result.exit_code == 2
    assert "vars:1:1: error[bad-line]" in result.stderr


def test_schema_of_a_dialect() -> None:
    documented = json.loads(dragoman_("schema", "databricks/chat.request").stdout)
    actual = json.loads(dragoman_("schema", "databricks/chat.request", "--profile", "actual").stdout)
    assert documented == schemas.load("databricks/chat.request")
    assert actual == schemas.load("databricks/chat.request", "actual")
    assert documented != actual


def test_schema_of_the_configuration() -> None:
    assert json.loads(dragoman_("schema", "config").stdout)["title"] == "dragoman.yaml"


def test_schema_list() -> None:
    assert dragoman_("schema", "--list").stdout.split() == ["config", *schemas.names()]


def test_unknown_schema() -> None:
    result = dragoman_("schema", "mindi/chat.request")
    assert (result.exit_code, result.stdout) == (2, "")
    assert 'did you mean "mindie/chat.request"?' in result.stderr
    assert dragoman_("schema").exit_code == 2
    assert dragoman_("schema", "config", "--profile", "newest").exit_code == 2


def test_serve_reads_the_file_beside_it(elsewhere: Path, served: list[tuple[Config, dict[str, Any]]]) -> None:
    (elsewhere / "dragoman.yaml").write_text("server: {port: 1234}\n" + GOOD)
    assert dragoman_("serve").exit_code == 0
    [(config, options)] = served
    assert config.server.port == 1234
    assert options == {"insecure": False, "log_format": "json", "log_level": "info"}


def test_options_of_serve_come_before_the_file(elsewhere: Path, served: list[tuple[Config, dict[str, Any]]]) -> None:
    (elsewhere / "a.yaml").write_text("server: {port: 1234, host: 127.0.0.2}\n" + GOOD)
    args = ("--config", "a.yaml", "--host", "::1", "--port", "0", "--insecure", "--log-format", "console")
    assert dragoman_("serve", *args, DRAGOMAN_LOG_LEVEL="debug").exit_code == 0
    [(config, options)] = served
    assert (config.server.host, config.server.port) == ("::1", 0)
    assert options == {"insecure": True, "log_format": "console", "log_level": "debug"}


def test_serve_takes_its_options_from_the_environment(
    elsewhere: Path, served: list[tuple[Config, dict[str, Any]]]
) -> None:
    (elsewhere / "a.yaml").write_text("server: {host: 0.0.0.0}\n" + GOOD)
    env = {
        "DRAGOMAN_CONFIG": "a.yaml",
        "DRAGOMAN_INSECURE": "1",
        "DRAGOMAN_PORT": "99",
        "DRAGOMAN_LOG_FORMAT": "console",
    }
    assert dragoman_("serve", **env).exit_code == 0
    [(config, options)] = served
    assert (config.server.port, options["insecure"]) == (99, True)


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra for the local engine is not installed."""
    monkeypatch.setattr(embedded, "can_answer", lambda: False)


@pytest.mark.usefixtures("no_engine")
def test_serve_without_a_file(served: list[tuple[Config, dict[str, Any]]]) -> None:
    result = dragoman_("serve", OPENAI_API_KEY="sk-x", DATABRICKS_HOST="h")
    assert result.exit_code == 0
    assert "from the environment: openai" in result.stderr
    assert "DATABRICKS_HOST is set, but DATABRICKS_TOKEN is not" in result.stderr
    assert list(served[0][0].models) == ["*"]


@pytest.mark.usefixtures("no_engine")
def test_serve_with_nothing_says_what_to_do(served: list[tuple[Config, dict[str, Any]]]) -> None:
    result = dragoman_("serve")
    assert (result.exit_code, result.stdout, served) == (2, "", [])
    for words in ("dragoman init", "--config", "OPENAI_API_KEY", "DATABRICKS_TOKEN", "AZURE_INFERENCE_CREDENTIAL"):
        assert words in result.stderr


def test_serve_refuses_a_bad_file(elsewhere: Path, served: list[tuple[Config, dict[str, Any]]]) -> None:
    (elsewhere / "dragoman.yaml").write_text("server: {host: 0.0.0.0}\n" + GOOD)
    result = dragoman_("serve")
    assert (result.exit_code, served) == (2, [])
    assert "error[open-host]" in result.stderr
    assert dragoman_("serve", "--config", "none.yaml").exit_code == 2


def test_serve_shows_warnings_and_goes_on(elsewhere: Path, served: list[tuple[Config, dict[str, Any]]]) -> None:
    (elsewhere / "dragoman.yaml").write_text(GOOD.replace("/v1", ""))
    result = dragoman_("serve")
    assert (result.exit_code, len(served)) == (0, 1)
    assert "warning[no-version]" in result.stderr


def test_serve_hands_over_the_status(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (elsewhere / "dragoman.yaml").write_text(GOOD)
    monkeypatch.setattr(serve, "run", lambda config, **options: 2)
    assert dragoman_("serve").exit_code == 2


def test_fake_passes_its_options_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[fakes.FakeProvider] = []
    monkeypatch.setattr(fakes, "run", lambda fake, *_: ran.append(fake))
    args = ("--port", "9", "--behaviour", "tools", "--profile", "native")
    assert dragoman_("fake", "mindie", *args, DRAGOMAN_FAKE_API_KEY="k").exit_code == 0
    (fake,) = ran
    assert (fake.dialect, fake.port, fake.behaviour) == ("mindie", 9, "tools")
    assert (fake.api_key, fake.profile) == ("k", "native")


def test_fake_explains_itself() -> None:
    assert dragoman_("fake", "--list").stdout.strip() == fakes.listing().strip()
    for args in (("fake",), ("fake", "nobody"), ("fake", "openai", "--behaviour", "nonsense")):
        result = dragoman_(*args)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("error: ")


def python(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, timeout=60, env={**os.environ, **env}, check=False
    )


def test_the_help_needs_no_heavy_module() -> None:
    script = (
        "import sys\nfrom dragoman.proxy.cli.main import main\nsys.argv[1:] = ['--help']\n"
        f"try: main()\nfinally: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    run = python("-c", script)
    assert (run.returncode, run.stderr.strip()) == (0, "[]")


def test_the_installed_command(elsewhere: Path) -> None:
    (elsewhere / "bad.yaml").write_text("sever: 1\n")
    script = "from dragoman.proxy.cli.main import main; main()"
    run = python("-c", script, "check", "bad.yaml", DRAGOMAN_PORT="tcp://10.0.0.1:80")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith('bad.yaml:1:1: error[unknown-key]: unknown key "sever" in the file\n')
    assert "\x1b" not in run.stderr, "no colours where there is no terminal"


def test_a_port_that_kubernetes_sets_is_no_port(elsewhere: Path) -> None:
    script = "from dragoman.proxy.cli.main import main; main()"
    run = python("-c", script, "serve", "--config", "none.yaml", DRAGOMAN_PORT="tcp://10.0.0.1:80")
    assert run.returncode == 2
    assert "none.yaml: error[no-file]" in run.stderr


def test_interrupted_is_status_130(elsewhere: Path) -> None:
    """`check` waits for a named pipe that nobody writes to."""
    os.mkfifo(elsewhere / "pipe.yaml")
    unignored = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    script = f"{unignored}; from dragoman.proxy.cli.main import main; main()"
    with subprocess.Popen([sys.executable, "-c", script, "check", "pipe.yaml"], stderr=subprocess.PIPE) as process:
        writer = opened_by_the_other_side(elsewhere / "pipe.yaml", process)
        try:
            assert interrupted(process) == 130
        finally:
            process.kill()
            os.close(writer)


def interrupted(process: subprocess.Popen[bytes]) -> int:
    """Its status. A signal that comes just before a read blocks is not seen before the read ends: another follows."""
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(1)
    pytest.fail("twenty interrupts did not end it")


def opened_by_the_other_side(pipe: Path, process: subprocess.Popen[bytes]) -> int:
    """The pipe's writing end, as soon as there is a reading one."""
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            time.sleep(0.01)
    pytest.fail(f"the command never opened the pipe: status {process.poll()}")


@pytest.mark.parametrize(("no_color", "colored"), [(None, True), ("1", False)])
def test_colours_on_a_terminal_unless_unwanted(no_color: str | None, colored: bool, elsewhere: Path) -> None:
    (elsewhere / "bad.yaml").write_text("sever: 1\n")
    master, slave = os.openpty()
    shown = bytearray()

    def drain() -> None:
        while chunk := _read(master):
            shown.extend(chunk)

    reader = threading.Thread(target=drain)
    reader.start()
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    script = "from dragoman.proxy.cli.main import main; main()"
    try:
        subprocess.run(
            [sys.executable, "-c", script, "check", "bad.yaml"],
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
    except OSError:  # Linux says so when the other side is closed
        return b""
