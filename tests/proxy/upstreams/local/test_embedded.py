"""Beginning without anything: `dragoman serve` and `dragoman chat` with the model that comes along, played by a tiny
one of random weights."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.environment import load_from_environment
from dragoman.proxy.config.names import match

PLAIN = Path(__file__).parents[3] / "local_engine" / "process" / "plain_engine.py"


def command(tiny: Path, *arguments: str) -> list[str]:
    script = f"""
        import sys
        from pathlib import Path
        from dragoman.local_engine import embedded
        from dragoman.proxy.upstreams.local import upstream
        from dragoman.proxy.cli.main import main
        embedded.embedded_folder = lambda: Path({str(tiny)!r})
        upstream.COMMAND = (sys.executable, {str(PLAIN)!r})
        sys.argv = ["dragoman", *{list(arguments)!r}]
        main()
    """
    return [sys.executable, "-c", textwrap.dedent(script)]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "DATABRICKS_HOST", "DATABRICKS_TOKEN", "AZURE_INFERENCE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@contextmanager
def served(tiny: Path) -> Iterator[tuple[str, str]]:
    """The address of a proxy without a configuration, and what it said when it had started."""
    arguments = command(tiny, "serve", "--port", "0", "--log-level", "error")
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                said += line
                if line.startswith("For other models"):
                    break
            url = re.search(r"listens on (\S+)", said)
            assert url, said
            yield url[1], said
        finally:
            process.terminate()
            process.wait(20)


def asked(url: str) -> JsonObject:
    question = {"model": "dragoman-mini", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(question).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def test_it_answers_at_once_and_says_what_to_try_which_works(tiny: Path, elsewhere: Path) -> None:
    with served(tiny) as (url, said):
        assert asked(url)["model"] == "dragoman-mini"
        curl = said[said.index("  curl ") : said.index("  OpenAI(")]
        run = subprocess.run(curl + " --silent", shell=True, capture_output=True, text=True, timeout=20)
    assert run.returncode == 127 or json.loads(run.stdout)["choices"], run.stderr  # 127: there is no curl here
    assert "no dragoman.yaml here; no provider in the environment either, so dragoman-mini answers" in said
    assert "engine: dragoman-mini on cpu" in said
    assert f"{url}/v1/chat/completions" in said and f"--base-url {url}/v1" in said


def test_chat_at_a_proxy_that_runs(tiny: Path, elsewhere: Path) -> None:
    """It answers once, it talks, and it says that there is no such model."""
    with served(tiny) as (url, _):
        expected = asked(url)["choices"][0]["message"]["content"]
        once = subprocess.run(
            command(tiny, "chat", "Hi", "--base-url", f"{url}/v1"), capture_output=True, text=True, timeout=30
        )
        talk = subprocess.run(
            command(tiny, "chat", "--base-url", f"{url}/v1"),
            input="Hi\n/help\n/new\nHi\n/quit\nHi\n",
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert "the model 'x' does not exist here" in fail_to_chat(tiny, 1, "--base-url", f"{url}/v1", "--model", "x")
    assert (once.returncode, once.stderr) == (0, "")
    visible = "".join(letter for letter in expected if letter.isprintable())  # a terminal gets no control characters
    assert once.stdout.startswith(visible.rstrip("\ufffd"))  # five tokens may end within a character
    assert (talk.returncode, talk.stdout) == (0, 2 * once.stdout)
    assert "/quit ends" in talk.stderr


def test_chat_brings_its_own_proxy(tiny: Path, elsewhere: Path) -> None:
    (elsewhere / "mine.yaml").write_text(
        f"providers: {{l: {{engine: local, model_dir: {tiny}, device: cpu}}}}\n"
        "models: {a: {targets: [{provider: l}]}}\n"
    )
    run = subprocess.run(
        command(tiny, "chat", "Hi", "--config", "mine.yaml"), capture_output=True, text=True, timeout=30
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.strip()


def fail_to_chat(tiny: Path, status: int, *arguments: str) -> str:
    """What `dragoman chat` prints as it ends with that status."""
    run = subprocess.run(command(tiny, "chat", "Hi", *arguments), capture_output=True, text=True, timeout=30)
    assert (run.returncode, run.stdout) == (status, "")
    return run.stderr


def test_chat_tells_what_failed(tiny: Path, elsewhere: Path) -> None:
    silent = fail_to_chat(tiny, 3, "--base-url", "http://127.0.0.1:9/v1")
    assert "http://127.0.0.1:9/v1 does not answer" in silent
    assert "does not begin with https://" in fail_to_chat(tiny, 2, "--base-url", "127.0.0.1")


def test_beside_providers_in_the_environment(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.local_engine import embedded

    monkeypatch.setattr(embedded, "embedded_folder", lambda: tiny)
    config = load_from_environment({"OPENAI_API_KEY": "sk-1"}, embedded=True)
    assert config is not None
    led = {name: config.models[match(config.models, name) or ""].targets[0].provider for name in ("dragoman-mini", "x")}
    assert led == {"dragoman-mini": "embedded", "x": "openai"}


def test_without_the_extra_the_message_has_a_hint(elsewhere: Path) -> None:
    script = """
        import sys
        from dragoman.local_engine import embedded
        from dragoman.proxy.cli.main import main
        embedded.missing_libraries = lambda: ["onnxruntime"]
        sys.argv = ["dragoman", "serve"]
        main()
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=30)
    assert run.returncode == 2
    assert "there is nothing to serve" in run.stderr
    assert "uv pip install '.[local]'" in run.stderr
