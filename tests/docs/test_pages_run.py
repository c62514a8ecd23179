"""The commands and programs of README.md and of docs/ do what the pages say, page by page and in their order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from .blocks import ROOT, Block, list_blocks
from .sandbox import Sandbox, matches, split_commands

RUN = ("console", "sh", "python")
PROGRAM = Path(__file__).with_name("run_program.py")
GIVEN = Path(__file__).with_name("given")
"""What the tests that pages show leave out: imports, and the application that is tested."""

BLOCKS = [block for block in list_blocks() if "not run" not in block.remarks]
RUNNABLE = {page: [*blocks] for page, blocks in groupby(BLOCKS, key=lambda block: block.page)}
RUNNABLE = {page: blocks for page, blocks in RUNNABLE.items() if {block.language for block in blocks} & {*RUN}}


@pytest.fixture
def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path, request.getfixturevalue("page"))
    yield made
    made.close()


DEFAULT = ("README.md", "docs/first-steps.md", "docs/commands.md")
"""The pages of the default run; CI runs the others with the larger tests."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if page in DEFAULT else [pytest.mark.heavy]) for page in RUNNABLE]
)
def test_page(page: str, sandbox: Sandbox) -> None:
    for block in RUNNABLE[page]:
        if house := block.remarks.get("running"):
            sandbox.start_house(house)
        if name := block.remarks.get("file"):
            sandbox.write(name, block.text)
        elif block.language == "python":
            run_python(block, sandbox)
        elif block.language in RUN:
            run_commands(block, sandbox)


def run_commands(block: Block, sandbox: Sandbox) -> None:
    commands = [*split_commands(block.text)] if block.language == "console" else [(block.text, "")]
    env = dict(pair.split("=", 1) for pair in block.remarks.get("env", "").split())
    statuses = [0] * (len(commands) - 1) + [int(block.remarks.get("status", 0))]
    for (command, shown), expected in zip(commands, statuses, strict=True):
        status, printed = sandbox.run(command, env, shown)
        assert status == expected, f"{block.name}: {command}\n{printed}"
        assert not shown or matches(shown, printed), f"{block.name}: {command}\n{printed}"


def run_python(block: Block, sandbox: Sandbox) -> None:
    given = GIVEN / f"{Path(block.page).stem}.py"
    is_test = "def test_" in block.text
    file = f"test_of_line_{block.line}.py" if is_test else f"line_{block.line}.py"
    sandbox.write(file, (given.read_text("utf-8") if given.exists() else "") + block.text)
    words = (
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function", file]
        if is_test
        else [str(PROGRAM), file]
    )
    status, printed = sandbox.run_program([sys.executable, *words], {})
    assert status == 0, f"{block.name}:\n{printed}"


def test_pages_are_run() -> None:
    assert {*RUNNABLE} >= {
        "README.md",
        *(f"docs/{name}.md" for name in ("clients", "commands", "configuration", "fakes")),
    }


@pytest.mark.parametrize(
    ("shown", "printed", "is_same"),
    [
        ("a\nb\n", "a  \nb\n\n", True),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("...\nd\n", "d\n", True),
        ("a\n...\n", "a\nb\n", True),
        ("a\n...\nc\n...\ne\n", "a\nc\ne\n", True),
        ("a\n...\nc\n...\ne\n", "a\nd\ne\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\na\n", "a\n", False),
        ("dragoman/0.1.0 x", "dragoman/9.9.9 x", True),
    ],
)
def test_output_is_compared(shown: str, printed: str, is_same: bool) -> None:
    assert matches(shown, printed) is is_same


def test_commands_are_split() -> None:
    text = "$ a \\\n    -b\nout $ 1\n$ c\n"
    assert [*split_commands(text)] == [("a \\\n    -b", "out $ 1\n"), ("c", "")]


def test_a_sandbox_runs_what_a_page_does(tmp_path: Path) -> None:
    """A server, a program that calls it, and a command whose status is not the expected one."""
    box = Sandbox(tmp_path, "x.md")
    try:
        box.start_house("an OpenAI server on port 8000")
        assert box.run("curl -s http://127.0.0.1:8000/v1/models | grep -c fake-model", {}) == (0, "1\n")
        assert box.run("echo $A; exit 3", {"A": "1"}) == (3, "1\n")
        with pytest.raises(AssertionError, match=r"x\.md:7: false"):
            run_commands(Block("x.md", 7, "console", "$ false\n"), box)
        with pytest.raises(AssertionError, match=r"x\.md:7: echo 1"):
            run_commands(Block("x.md", 7, "console", "$ echo 1\n2\n"), box)
    finally:
        box.close()
    assert ROOT not in tmp_path.parents
