"""A dialect is one folder, its schemas and one line of the registry: groq, a made-up one, is added to a copy of the
tree, and everything there knows it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GIVEN = Path(__file__).parent / "groq"
LINKED = ("contract", "local_engine", "proxy", "tools")
LINE = '    "groq",\n'
RECIPE = "{} files with {} lines, and a line in `adapters/registry.py`"
DOCS = """
from dragoman.proxy.config.schema import serialize_schema
from tools.docs.__main__ import main
main(["docs"])
print(serialize_schema())
"""
ASK = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy: what is not altered is linked."""
    made = tmp_path_factory.mktemp("tree")
    cache = shutil.ignore_patterns("__pycache__")
    for folder in ("adapters", "schemas"):
        shutil.copytree(ROOT / folder, made / folder, ignore=cache)
        shutil.copytree(GIVEN / folder, made / folder / "groq", ignore=cache)
    for folder in LINKED:
        (made / folder).symlink_to(ROOT / folder)
    shutil.copytree(ROOT / "dragoman", made / "dragoman", symlinks=True, ignore=cache)
    registry = made / "adapters/registry.py"
    text = registry.read_text("utf-8")
    assert text.count("NAMES = (\n") == 1
    registry.write_text(text.replace("NAMES = (\n", f"NAMES = (\n{LINE}"), "utf-8")
    return made


def start(tree: Path, *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    env = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.Popen([sys.executable, *words], cwd=tree, env=env, stdout=pipe, stderr=pipe, text=True)


def dragoman(tree: Path, *words: str) -> subprocess.Popen[str]:
    return start(tree, "-c", "from dragoman.proxy.cli.main import main; main()", *words)


@pytest.fixture(scope="module")
def fake(tree: Path) -> Iterator[str]:
    """The base address of `dragoman fake groq`."""
    process = dragoman(tree, "fake", "groq")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("fake groq (actual) at http://127.0.0.1:"), line or process.communicate()[1]
        yield line.split(" at ")[1].split(",")[0]
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def config(tree: Path, fake: str) -> Path:
    file = tree / "dragoman.yaml"
    file.write_text(
        f'providers: {{p: {{dialect: groq, base_url: "{fake}"}}}}\n'
        "models: {m: {targets: [{provider: p, model: llama}]}}\n",
        "utf-8",
    )
    return file


@pytest.mark.heavy
def test_it_is_called_checked_and_documented(tree: Path, fake: str, config: Path) -> None:
    """Its processes run side by side: each takes a second to start."""
    request = tree / "request.json"
    request.write_text(json.dumps({**ASK, "seed": 1}), "utf-8")
    ask = ("call", "--config", str(config), "--model", "m")
    running = {
        "whole": dragoman(tree, *ask, "--message", "Hello"),
        "stream": dragoman(tree, *ask, "--message", "Hello", "--stream"),
        "refused": dragoman(tree, *ask, str(request)),
        "cases": dragoman(tree, "contract", "run", "--base-url", fake, "--dialect", "groq", "--model", "fake-model"),
        "docs": start(tree, "-c", DOCS),
    }
    said = {name: (*process.communicate(timeout=60), process.returncode) for name, process in running.items()}

    out, error, status = said["whole"]
    assert status == 0, error
    assert '"finish_reason": "stop"' in out and "The dragoman bows" in out, out

    out, error, status = said["stream"]
    assert status == 0, error
    assert re.search(r'"finish_reason": ?"stop"', out) and "[DONE]" in out, out

    out, error, status = said["refused"]
    assert status == 1, (out, error)
    assert "seed cannot be served" in out and '"param": "seed"' in out, out

    out, error, status = said["cases"]
    assert status == 0, out + error
    passed = re.search(r"(\d+) pass", error)
    assert passed is not None and int(passed[1]) > 20, error

    assert said["docs"][2] == 0, said["docs"][1]
    page = (tree / "docs/dialects/groq.md").read_text("utf-8")
    assert "`POST /chat/completions`" in page and '"finish_reason": "eos"' in page
    assert "### To groq (chat)" in (tree / "docs/losses.md").read_text("utf-8")

    assert '"groq"' in said["docs"][0], "it is a word of the configuration"


def test_what_it_took_is_what_the_recipe_says() -> None:
    files = [file for file in GIVEN.rglob("*") if file.suffix in (".py", ".json")]
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in files)
    assert RECIPE.format(len(files), lines) in " ".join((ROOT / "CONTRIBUTING.md").read_text("utf-8").split())
