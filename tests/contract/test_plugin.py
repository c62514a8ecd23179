"""The pytest plugin, in a pytest subprocess."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from dragoman.contract.servers import FakeServers

USER_TEST = """
import json, urllib.request

def test_application(dragoman_fake, dragoman_proxy):
    fake = dragoman_fake("mindie", behaviour="eos-token")
    providers = {"p": {"dialect": "mindie", "base_url": fake.base_url}}
    url = dragoman_proxy({"providers": providers, "models": {"m": {"targets": [{"provider": "p", "model": "x"}]}}})
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    request = urllib.request.Request(url + "/v1/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        assert json.load(reply)["choices"][0]["finish_reason"] == "stop"
    assert fake.requests[0].body["model"] == "x"
"""


CHAOS_TEST = """
import json, urllib.error, urllib.request
import pytest

BODY = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()

def ask(url):
    with urllib.request.urlopen(urllib.request.Request(url, BODY, {"content-type": "application/json"})) as reply:
        return reply.read()

def test_client_notices_a_broken_event(dragoman_fake, dragoman_chaos):
    proxy = dragoman_chaos.add(dragoman_fake("openai").base_url)
    assert proxy.url.endswith("/v1")
    url = proxy.url + "/chat/completions"
    events = ask(url).split(b"data: ")[1:]
    name = proxy.toxic("corrupt_event", event=2)
    broken = ask(url).split(b"data: ")[1:]
    assert [event[:1] for event in broken] == [b"{", b"}"] + [event[:1] for event in events[2:]]
    proxy.remove(name)
    assert b"data: }" not in ask(url)
    proxy.toxic("reset_peer")
    with pytest.raises(OSError):
        ask(url)
    proxy.disable()
    with pytest.raises(urllib.error.URLError):
        ask(url)
    proxy.reset()
    assert len(ask(url).split(b"data: ")[1:]) == len(events)
    assert proxy.connections == 5

def test_plain_addresses_and_errors(dragoman_chaos):
    proxy = dragoman_chaos.add("127.0.0.1:1")
    assert proxy.url == "http://" + proxy.listen
    with pytest.raises(ValueError, match="similar: latency"):
        proxy.toxic("latenzy")
    with pytest.raises(ValueError, match="host:port"):
        dragoman_chaos.add("nowhere")
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest without other plugins, which take longer to load than the tests."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "dragoman.contract.plugin",
        *options,
    ]
    env = {**os.environ, "DRAGOMAN_CONTRACT_KEY": "k", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, env=env, check=False)


@pytest.fixture
def start_fake() -> Iterator[FakeServers]:
    with FakeServers() as start:
        yield start


def test_entry_point_names_the_plugin() -> None:
    assert any(entry.value == "dragoman.contract.plugin" for entry in entry_points(group="pytest11"))


def test_plugin_does_nothing_without_options(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n", "utf-8")
    result = run_pytest(tmp_path)
    assert (result.returncode, "1 passed" in result.stdout) == (0, True), result.stdout


def test_cases_become_tests(tmp_path: Path, start_fake: FakeServers) -> None:
    fake = start_fake("mindie", api_key="k")
    options = ["--dragoman-base-url", fake.base_url, "--dragoman-model", "m", "--dragoman-dialect", "mindie"]
    good = run_pytest(tmp_path, *options, "--dragoman-only", "chat/text/plain")
    assert (good.returncode, "1 passed" in good.stdout) == (0, True), good.stdout
    fake.behaviour = "no-choices"
    bad = run_pytest(tmp_path, *options, "--dragoman-only", "chat/text/plain")
    assert bad.returncode == 1
    assert "MUST: " in bad.stdout
    assert "curl -isS" in bad.stdout
    (tmp_path / "gaps.yaml").write_text("chat/text/pl*: it has nothing to say\n", "utf-8")
    known = run_pytest(tmp_path, *options, "--dragoman-only", "chat/text/plain", "--dragoman-expect", "gaps.yaml")
    assert (known.returncode, "1 xfailed" in known.stdout) == (0, True), known.stdout


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--dragoman-base-url", "http://x"], "needs --dragoman-model"),
        (["--dragoman-base-url", "http://x", "--dragoman-model", "m", "--dragoman-dialect", "x"], "is one of openai"),
        (["--dragoman-base-url", "http://x", "--dragoman-model", "m", "--dragoman-level", "x"], "is MUST, SHOULD or"),
    ],
)
def test_invalid_options_get_a_message(tmp_path: Path, options: list[str], problem: str) -> None:
    result = run_pytest(tmp_path, *options)
    assert result.returncode == 4
    assert problem in result.stderr


def test_fixtures_serve_the_tests_of_users(tmp_path: Path) -> None:
    (tmp_path / "test_application.py").write_text(USER_TEST, "utf-8")
    result = run_pytest(tmp_path)
    assert (result.returncode, "1 passed" in result.stdout) == (0, True), result.stdout


def test_fault_proxies_serve_the_tests_of_users(tmp_path: Path) -> None:
    (tmp_path / "test_application.py").write_text(CHAOS_TEST, "utf-8")
    result = run_pytest(tmp_path, "-W", "error")
    assert (result.returncode, "2 passed" in result.stdout) == (0, True), result.stdout


FOREIGN_CONFIGURATION = """
[pytest]
addopts = --strict-markers --strict-config
xfail_strict = true
filterwarnings = error
"""
FOREIGN_TEST = """
def test_own():
    pass
"""
LIST_MODULES = """
import sys
import pytest
status = pytest.main(sys.argv[1:])
print("modules:", *sys.modules)
sys.exit(status)
"""


def run_foreign_project(folder: Path, *options: str) -> tuple[int, str, set[str]]:
    """Run pytest in a project that knows nothing of dragoman: the plugin is loaded by its entry point."""
    (folder / "pytest.ini").write_text(FOREIGN_CONFIGURATION, "utf-8")
    (folder / "test_own.py").write_text(FOREIGN_TEST, "utf-8")
    command = [
        sys.executable,
        "-c",
        LIST_MODULES,
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:asyncio",
        *options,
    ]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHONPATH"))}
    env["DRAGOMAN_CONTRACT_KEY"] = "k"
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=env, check=False)
    output, _, modules = run.stdout.partition("modules:")
    return run.returncode, output + run.stderr, set(modules.split())


def test_foreign_project_runs_the_cases(tmp_path: Path, start_fake: FakeServers) -> None:
    fake = start_fake("openai", api_key="k")
    words = ("--dragoman-url", fake.base_url, "--dragoman-model", "m")
    only = ("--dragoman-only", "chat/text/p*", "--dragoman-only", "chat/body/*", "--dragoman-exclude", "chat/body/n*")
    status, output, modules = run_foreign_project(tmp_path, *words, *only)
    assert (status, "failed" in output) == (0, False), output
    assert "passed" in output
    assert not modules & {"dragoman.proxy", "dragoman.local_engine", "dragoman.contract.fakes", "aiohttp.web"}
    status, output, _ = run_foreign_project(tmp_path, *words, *only, "-k", "own or plain")
    assert (status, "2 passed" in output) == (0, True), output


def test_foreign_project_without_the_options_loads_none_of_the_suite(tmp_path: Path) -> None:
    status, output, modules = run_foreign_project(tmp_path)
    assert (status, "1 passed" in output) == (0, True), output
    assert {module for module in modules if module.startswith("dragoman")} == {
        "dragoman",
        "dragoman.contract",
        "dragoman.contract.plugin",
    }


def test_protocol_that_is_not_served_is_skipped(tmp_path: Path, start_fake: FakeServers) -> None:
    """The probe runs first, even if it was not selected."""
    fake = start_fake("openai", behaviour="status-404")
    words = ("--dragoman-url", fake.base_url, "--dragoman-model", "m", "--dragoman-only", "responses/stream/*")
    run = run_pytest(tmp_path, *words)
    assert (run.returncode, "skipped" in run.stdout, "failed" in run.stdout) == (0, True, False), run.stdout
    assert len(fake.requests) == 1


def test_known_gap_that_passes_does_not_fail(tmp_path: Path, start_fake: FakeServers) -> None:
    fake = start_fake("openai", api_key="k")
    (tmp_path / "gaps.yaml").write_text("chat/text/plain: it has nothing to say\n", "utf-8")
    words = ("--dragoman-url", fake.base_url, "--dragoman-model", "m", "--dragoman-only", "chat/text/plain")
    run = run_pytest(tmp_path, *words, "--dragoman-expect", "gaps.yaml")
    assert (run.returncode, "1 xpassed" in run.stdout) == (0, True), run.stdout
