"""The documentation as a site: it is built without a warning, can be searched, and loads nothing from other hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.docs.site_hook import name_files_outside

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
LOADED = re.compile(
    r"<(?:script|img|iframe)[^>]* src=[\"']?(https?:|//)"
    r"|<link[^>]* rel=[\"']?(?:stylesheet|preconnect)[^>]*(https?:|//)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    if find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: it is in the group `docs`")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return folder


def test_every_page_is_built_and_can_be_found(site: Path) -> None:
    pages = {str(file.relative_to(DOCS).with_suffix(".html")) for file in DOCS.rglob("*.md")}
    built = {page.replace("README.html", "index.html") for page in pages}
    assert not [page for page in built if not (site / page).is_file()]
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    assert built <= {entry["location"].partition("#")[0] or "index.html" for entry in index["docs"]}


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    assert not [str(file) for file in site.rglob("*.html") if LOADED.search(file.read_text("utf-8"))]


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("fakes.md", "see [examples/a.sh](../examples/a.sh).", "see `examples/a.sh`."),
        ("fakes.md", "see [the script](../examples/a.sh#L1).", "see the script (`examples/a.sh`)."),
        ("dialects/openai.md", "[Losses](../losses.md)", "[Losses](../losses.md)"),
        ("dialects/openai.md", "[the license](../../LICENSE)", "the license (`LICENSE`)"),
        ("fakes.md", "[Running](running.md#log)", "[Running](running.md#log)"),
    ],
)
def test_links_to_files_outside_become_their_names(page: str, text: str, shown: str) -> None:
    assert name_files_outside(text, page) == shown
