"""The configurations in docs/ can be used, with models and providers added where a page leaves them out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.proxy.config.load import check_text

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = ("completions", "configuration", "embeddings", "providers", "responses", "running")
YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def blocks() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        yield from ((page, block) for block in YAML.findall((DOCS / f"{page}.md").read_text("utf-8")))


def complete(block: str) -> str:
    """The block with the providers that its models name, or with a model for its providers."""
    keys = re.findall(r"^(\w+):", block, re.MULTILINE)
    if "providers" not in keys:
        names = dict.fromkeys(re.findall(r"provider: ([\w-]+)", block)) or ["p"]
        providers = (f'  {name}: {{dialect: databricks, base_url: "https://x.example.com"}}\n' for name in names)
        block += "".join(["providers:\n", *providers])
    if "models" not in keys:
        names = re.findall(r"^  ([\w-]+):", block.partition("providers:\n")[2], re.MULTILINE)
        block += f"models: {{fast: {{targets: [{', '.join(f'{{provider: {name}}}' for name in names)}]}}}}\n"
    return block


def test_every_page_has_some() -> None:
    assert {page for page, _ in blocks()} == set(PAGES)


@pytest.mark.parametrize(("page", "block"), [*blocks()], ids=lambda value: value.partition("\n")[0])
def test_example(page: str, block: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key")
    env = {name: f"value-of-{name}" for name in re.findall(r"\$\{(\w+)\}", block)}
    text = complete(block).replace("/run/secrets/openai", str(tmp_path / "key"))
    text = text.replace("models/qwen3", str(ROOT / "local_engine" / "mini"))
    checked = check_text(text, f"{page}.md", env)
    assert checked.warnings == ()
