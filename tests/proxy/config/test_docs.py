"""The examples of docs/providers.md are valid once models are added."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.proxy.config.load import check_text

PAGE = Path(__file__).parents[3] / "docs" / "providers.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_the_page_has_examples() -> None:
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_is_valid(block: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key")
    env = dict.fromkeys(re.findall(r"\$\{(\w+)\}", block), "value")
    name = re.search(r"^  ([\w-]+):", block, re.MULTILINE)
    assert name is not None
    text = block.replace("/run/secrets/openai", str(tmp_path / "key"))
    checked = check_text(f"{text}models: {{m: {{targets: [{{provider: {name[1]}}}]}}}}\n", "page.yaml", env)
    assert checked.warnings == ()
