"""The YAML of the pages can be used: configurations are checked, with models and providers added where a page leaves
them out, and files of the contract suite are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.contract.case_files import read_case_file
from dragoman.contract.known_gaps import read_known_gaps
from dragoman.proxy.config.load import check_text

from .blocks import ROOT, Block, list_blocks

BLOCKS = [block for block in list_blocks() if block.language == "yaml" and "not run" not in block.remarks]
CASES = [block for block in BLOCKS if re.search(r"^cases:$", block.text, re.MULTILINE)]
EXPECTATIONS = [block for block in BLOCKS if re.match(r"[a-z]+/", block.text)]
OTHERS = [block for block in BLOCKS if "model_list:" in block.text]  # of LiteLLM: the page imports it
CONFIGURATIONS = [block for block in BLOCKS if block not in (*CASES, *EXPECTATIONS, *OTHERS)]


def name_of(block: Block) -> str:
    return block.name


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


def test_pages_show_each_kind() -> None:
    assert {block.page for block in CONFIGURATIONS} >= {f"docs/{name}.md" for name in ("configuration", "providers")}
    assert CASES and EXPECTATIONS and OTHERS


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=name_of)
def test_configuration(block: Block, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key")
    env = {name: f"value-of-{name}" for name in re.findall(r"\$\{(\w+)\}", block.text)}
    text = complete(block.text).replace("/run/secrets/openai", str(tmp_path / "key"))
    text = text.replace("models/qwen3", str(ROOT / "local_engine" / "mini"))
    checked = check_text(text, block.page, env)
    assert checked.warnings == ()


@pytest.mark.parametrize("block", CASES, ids=name_of)
def test_contract_cases(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(block.text, "utf-8")
    assert read_case_file(file)


@pytest.mark.parametrize("block", EXPECTATIONS, ids=name_of)
def test_known_gaps(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "gaps.yaml"
    file.write_text(block.text, "utf-8")
    assert read_known_gaps(file)
