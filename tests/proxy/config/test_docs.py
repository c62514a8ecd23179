"""What docs/providers.md shows is a configuration that can be used, but for the models that it leaves out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.proxy.config.load import check_text

PAGE = Path(__file__).parents[3] / "docs" / "providers.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_there_are_some() -> None:
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("block", BLOCKS)
def test_example(block: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key")
    env = dict.fromkeys(re.findall(r"\$\{(\w+)\}", block), "value")
    name = re.search(r"^  ([\w-]+):", block, re.MULTILINE)
    assert name is not None
    text = block.replace("/run/secrets/openai", str(tmp_path / "key"))
    checked = check_text(f"{text}models: {{m: {{targets: [{{provider: {name[1]}}}]}}}}\n", "page.yaml", env)
    assert checked.warnings == ()
