"""The package `dragoman` holds five links to the top-level folders; a checkout without them builds an empty wheel."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dragoman
from tests.tables import for_each

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("adapters", "contract", "local_engine", "proxy", "schemas")
SOURCES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
SCRIPTS = ROOT / "tools" / "clients" / "scripts"
TOOLS = sorted(file for file in (ROOT / "tools").rglob("*.py") if not file.is_relative_to(SCRIPTS))
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *(ROOT / "docs").rglob("*.md")])
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MOST_LINES = 400
OPTIONAL = {
    "torch": "only the training of dragoman-mini needs it",
    "gguf": "only the environment of llama-cpp-python has it",
    "litserve": "only its own environment has it",
}
NOT_INSTALLED = ROOT / "contract" / "recordings"  # only tests read them

MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|Users|work|workspace|mnt)/|\b[A-Z]:\\", re.ASCII)


def module_name(file: Path) -> str:
    path = file.relative_to(ROOT).with_suffix("").parts
    parts = path if path[0] == "tools" else ("dragoman", *path)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def holds_code(file: Path) -> bool:
    """False for an `__init__.py` that is empty or only a docstring: it exports nothing."""
    return any(not isinstance(node, ast.Expr) for node in ast.parse(file.read_text("utf-8")).body)


@pytest.mark.parametrize("folder", FOLDERS)
def test_link_leads_to_the_folder(folder: str) -> None:
    link = ROOT / "dragoman" / folder
    assert link.is_symlink(), f"dragoman/{folder} is no link: was this checked out without symbolic links?"
    assert os.readlink(link) == f"../{folder}"
    assert link.resolve() == (ROOT / folder).resolve()


def test_there_are_no_other_links() -> None:
    assert sorted(path.name for path in (ROOT / "dragoman").iterdir() if path.is_symlink()) == list(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_is_installed_under_dragoman(folder: str) -> None:
    module = importlib.import_module(f"dragoman.{folder}")
    assert module.__file__ is not None
    assert Path(module.__file__).resolve() == (ROOT / folder / "__init__.py").resolve()


def test_dragoman_runs_as_a_module(tmp_path: Path) -> None:
    """From another folder, so that only the installed package can be imported."""
    words = (sys.executable, "-m", "dragoman")
    version = subprocess.run([*words, "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (version.returncode, version.stdout) == (0, f"dragoman {dragoman.__version__}\n")
    usage = subprocess.run([*words, "no-such-command"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert usage.returncode == 2
    assert usage.stderr.startswith("Usage: dragoman ")


@for_each("file", [file for file in (*SOURCES, *TOOLS) if holds_code(file)])
def test_module_exports_what_it_says(file: Path) -> None:
    try:
        module = importlib.import_module(module_name(file))
    except ModuleNotFoundError as missing:
        assert missing.name in OPTIONAL, f"{missing.name} is not installed"
        return
    assert hasattr(module, "__all__"), f"{module.__name__} has no __all__"
    assert list(module.__all__) == list(dict.fromkeys(module.__all__)), "__all__ lists a name twice"
    assert not [name for name in module.__all__ if not hasattr(module, name)], "__all__ names what is not there"


def test_every_folder_of_modules_is_a_package() -> None:
    """setuptools leaves a folder without `__init__.py` out of the wheel, without a word."""
    assert not [str(file.relative_to(ROOT)) for file in SOURCES if not (file.parent / "__init__.py").exists()]


def test_every_data_file_gets_into_the_wheel() -> None:
    """setuptools takes only the data files that `package-data` lists."""
    listed = {
        file
        for package, patterns in PYPROJECT["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for file in ROOT.joinpath(*package.split(".")).resolve().glob(pattern)
    }
    files = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.is_file())
    data = {
        file.resolve()
        for file in files
        if file.suffix not in {".py", ".pyc"} and NOT_INSTALLED not in file.resolve().parents
    }
    assert not sorted(str(file.relative_to(ROOT)) for file in data - listed)


def test_files_are_short() -> None:
    lengths = {str(file.relative_to(ROOT)): file.read_text("utf-8").count("\n") for file in (*SOURCES, *TOOLS)}
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES}


def test_version_is_the_same_everywhere() -> None:
    assert PYPROJECT["project"]["version"] == dragoman.__version__


def test_constraints_are_plain_pins() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert not [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)]
    assert lines == sorted(lines, key=lambda line: line.partition("=")[0])


@for_each("text", TEXTS)
def test_documents_name_no_place_on_a_machine(text: Path) -> None:
    content = text.read_text("utf-8")
    assert not [line for line in content.splitlines() if MACHINE_PATH.search(line) or str(ROOT) in line]


@pytest.mark.parametrize("path", ["/home/me/x", "see /root/x", "C:\\Users\\me", "file:///Users/me/x"])
def test_machine_paths_are_recognised(path: str) -> None:
    assert MACHINE_PATH.search(path)


@pytest.mark.parametrize("path", ["https://host/work/x", "docs/home/x.md", "/v1/models", "/models/qwen3", "../work/x"])
def test_other_paths_are_not(path: str) -> None:
    assert not MACHINE_PATH.search(path)


def test_the_library_exports_what_it_says() -> None:
    for name in dragoman.__all__:
        assert getattr(dragoman, name) is not None
    assert {*dragoman.__all__} <= {*dir(dragoman)}
    with pytest.raises(AttributeError, match="has no attribute 'Pipelin'"):
        _ = dragoman.Pipelin


def test_what_the_library_exports_is_documented() -> None:
    """Functions and classes have docstrings of their own; docs/pipeline.md names the steps."""
    page = (ROOT / "docs" / "pipeline.md").read_text("utf-8")
    for name in dragoman.__all__:
        exported = getattr(dragoman, name)
        assert not callable(exported) or (exported.__doc__ and not exported.__doc__.startswith(f"{name}(")), name
    for method in ("receive", "start_conversation", "supply", "prepare", "render_fault"):
        assert f"pipeline.{method}(" in page
    for method in ("start_reply", "feed", "resume", "close", "confirm_save", "reject_save", "fail", "is_reading"):
        assert f"`{method}(" in page, method


def test_importing_the_library_loads_nothing_heavy() -> None:
    heavy = {"aiohttp", "pydantic", "jsonschema_rs", "orjson"}
    code = f"import sys, dragoman; print(sorted({heavy} & sys.modules.keys()))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout == "[]\n"
