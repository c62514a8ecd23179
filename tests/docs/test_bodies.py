"""The JSON of the pages is what it says: samples of a dialect obey its schemas, requests are requests."""

from __future__ import annotations

import json
from itertools import groupby

import pytest

from dragoman.adapters.validation import load_validator
from tests.tables import for_each

from .blocks import Block, list_blocks

BLOCKS = [block for block in list_blocks() if block.language == "json" and "not run" not in block.remarks]
SIDES = ("request", "reply", "error")
"""What a dialect's page shows of a protocol, in this order. Lists of models have only a reply."""


def list_samples() -> list[tuple[str, Block]]:
    """The names of the schemas, and the blocks that obey them."""
    samples = []
    own = [block for block in BLOCKS if block.page.startswith("docs/dialects/")]
    for (page, protocol), blocks in groupby(own, key=lambda block: (block.page, block.section)):
        dialect = page.removeprefix("docs/dialects/").removesuffix(".md")
        samples += [(f"{dialect}/{protocol}.{side}", block) for side, block in zip(SIDES, blocks, strict=True)]
    return samples


OTHERS = [block for block in BLOCKS if not block.page.startswith("docs/dialects/")]


@for_each(("schema", "block"), list_samples())
def test_sample(schema: str, block: Block) -> None:
    assert [*load_validator(schema, "actual").violations(json.loads(block.text))] == []


@pytest.mark.parametrize("block", OTHERS, ids=lambda block: block.name)
def test_request(block: Block) -> None:
    body = json.loads(block.text)
    protocol = "chat" if "messages" in body else "responses"
    assert [*load_validator(f"openai/{protocol}.request", "actual").violations(body)] == []


def test_samples_are_found() -> None:
    assert len({schema for schema, _ in list_samples()}) > 40
    assert OTHERS
