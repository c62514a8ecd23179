"""Every code block of every page is run or checked by a test, or a remark says why nothing runs it."""

from __future__ import annotations

import json
import re
import shlex
import tomllib

import click
import pytest
import typer.main
from ruamel.yaml import YAML

from dragoman.proxy.cli.main import app
from tests.tables import for_each

from . import test_bodies, test_configurations, test_pages_run
from .blocks import PAGES, REMARKS, ROOT, Block, find_unfenced, list_blocks, read_blocks
from .sandbox import HOUSES, split_commands

BLOCKS = list_blocks()
NO_CODE = ("text", "mermaid")
"""Languages of blocks that are nothing to run: output, drawings, diagrams that tools/docs generates."""

COMMAND = re.compile(r"(?:^|\| )(?:[A-Z_]+=\S+ )*(?:uv run (?:-\S+ (?:\w+ )?)*)?dragoman (.+)")


def list_tested() -> set[str]:
    """The names of the blocks that some test takes."""
    pages = test_pages_run.RUNNABLE.values()
    run = {block.name for blocks in pages for block in blocks if block.language in test_pages_run.RUN}
    files = {block.name for blocks in pages for block in blocks if "file" in block.remarks}
    kinds = (test_configurations.CONFIGURATIONS, test_configurations.CASES, test_configurations.EXPECTATIONS)
    bodies = [block for _, block in test_bodies.list_samples()] + test_bodies.OTHERS
    return run | files | {block.name for blocks in (*kinds, bodies) for block in blocks}


def test_every_block_is_tested_or_says_why_not() -> None:
    tested = list_tested()
    code = [block for block in BLOCKS if block.language not in NO_CODE]
    assert len(code) > 120
    assert [block.name for block in code if block.name not in tested and "not run" not in block.remarks] == []
    assert [block.name for block in code if block.name in tested and "not run" in block.remarks] == []


def test_every_block_has_a_language() -> None:
    assert [block.name for block in BLOCKS if not re.fullmatch(r"[a-z]+", block.language)] == []


def test_commands_with_a_prompt_are_consoles() -> None:
    assert [block.name for block in BLOCKS if block.language == "sh" and re.search(r"^\$ ", block.text, re.M)] == []


@for_each("page", PAGES)
def test_no_block_is_only_indented(page: object) -> None:
    assert find_unfenced(page.read_text("utf-8")) == []  # type: ignore[attr-defined]


def test_remarks_are_known_and_have_reasons() -> None:
    used = [
        (block.name, *remark) for block in BLOCKS if block.language not in NO_CODE for remark in block.remarks.items()
    ]
    assert [row for row in used if row[1] not in REMARKS] == []
    assert [row for row in used if row[1] == "not run" and len(row[2].split()) < 3] == []
    assert [row for row in used if row[1] == "running" and row[2] not in HOUSES] == []


def test_scripts_that_a_reason_names_exist() -> None:
    reasons = " ".join(block.remarks.get("not run", "") for block in BLOCKS)
    named = re.findall(r"(?:tools|tests|bench|\.ci)/[\w./-]*\w", reasons)
    assert named and [name for name in named if not (ROOT / name).exists()] == []


def list_commands() -> list[tuple[str, str]]:
    """The commands of dragoman in console blocks, those that nothing runs included."""
    consoles = [block for block in BLOCKS if block.language == "console"]
    lines = [(block.name, command) for block in consoles for command, _ in split_commands(block.text)]
    return [(name, found[1]) for name, text in lines if (found := COMMAND.search(text.replace("\\\n", " ")))]


@pytest.mark.parametrize(("name", "command"), list_commands())
def test_command_exists(name: str, command: str) -> None:
    """With the options that it is given."""
    words = [word for word in shlex.split(command, comments=True) if word != "&"]
    found: click.Command = typer.main.get_command(app)
    while hasattr(found, "commands") and not words[0].startswith("-"):
        found = found.commands[words.pop(0)]
    known = {"--help", *(option for parameter in found.params for option in parameter.opts)}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, name


@for_each("block", [one for one in BLOCKS if "not run" in one.remarks])
def test_what_is_not_run_can_be_read(block: Block) -> None:
    match block.language:
        case "python":
            compile(block.text, block.name, "exec", 0x2000)  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        case "toml":
            assert tomllib.loads(block.text)
        case "yaml":
            assert YAML(typ="safe").load(block.text)
        case "json":
            assert json.loads(re.sub(r"^//.*\n", "", block.text))
        case "console":
            assert [*split_commands(block.text)] and block.text.startswith("$ ")
        case _:
            assert block.text.strip()


def test_blocks_and_remarks_are_read() -> None:
    text = "# A\n\n<!-- file: x.json -->\n<!-- status: 1 -->\n```json\n{}\n```\n\n## B\n\n```\nplain\n```\n"
    first, second = read_blocks(text, "a.md")
    assert first == Block("a.md", 5, "json", "{}\n", "A", {"file": "x.json", "status": "1"})
    assert second == Block("a.md", 11, "", "plain\n", "B", {})


def test_indented_blocks_are_found() -> None:
    assert find_unfenced("Text:\n\n    $ a\n    $ b\n\nText.\n") == ["    $ a\n    $ b\n"]
    assert find_unfenced("- an item\n\n    of a list\n  - another\n\nText.\n") == []
    assert find_unfenced("- an item\n\nText.\n\n    $ a\n") == ["    $ a\n"]
    assert find_unfenced("```sh\n\n    a\n```\n") == []
