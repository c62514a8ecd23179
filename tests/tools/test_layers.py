"""`tools.layers` on a small package made for the test, and its order of rooms against that of import-linter."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools import layers
from tools.layers import FOLDERS, ROOMS, Import, Layers, Report, main, measure

ROOT = Path(__file__).resolve().parents[2]
ORDER = (("top",), ("left", "right"), ("bottom",))
CLEAN = {
    "top/__init__.py": "from .run import start",
    "top/run.py": "from layered.left import work\n\n\ndef start():\n    from layered.bottom import base\n",
    "left/__init__.py": "",
    "left/work.py": "from ..bottom.base import value",
    "right.py": "from layered.bottom import base",
    "bottom/__init__.py": "",
    "bottom/base.py": "from ._table import value",
    "bottom/_table.py": "value = _hidden = 1",
}


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Report:
    """The measurements of the clean package with the files of the parameter in place of its own."""
    changed: Mapping[str, str] = getattr(request, "param", {})
    for name, text in {"__init__.py": "", **CLEAN, **changed}.items():
        file = tmp_path / "layered" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return measure("layered", ORDER)


def test_a_clean_package_has_no_findings(report: Report) -> None:
    assert report.rooms == {"", "top", "left", "right", "bottom"}
    assert report.flat_files == 1
    assert report.chain == ("top", "left", "bottom")
    assert report.is_within_limits
    assert report.is_ordered


@pytest.mark.parametrize(
    ("report", "found"),
    [
        ({"bottom/base.py": "\nimport layered.top.run"}, Import("layered.bottom.base", "layered.top.run", 2)),
        (
            {"bottom/base.py": "def late():\n    from ..left import work"},
            Import("layered.bottom.base", "layered.left.work", 2),
        ),
        ({"right.py": "from .left.work import value"}, Import("layered.right", "layered.left.work", 1)),
        (
            {"bottom/base.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from layered import right"},
            Import("layered.bottom.base", "layered.right", 3),
        ),
    ],
    indirect=["report"],
    ids=["upward", "inside a function", "sideways", "for types only"],
)
def test_an_import_that_is_not_downward_is_found(report: Report, found: Import) -> None:
    assert report.upward == (found,)
    assert not report.is_ordered


@pytest.mark.parametrize(
    ("report", "name"),
    [
        ({"right.py": "from layered.bottom._table import value"}, "layered.bottom._table.value"),
        ({"right.py": "from .bottom import _table"}, "layered.bottom._table"),
        ({"right.py": "from .bottom.base import _hidden"}, "layered.bottom.base._hidden"),
        ({"right.py": "import layered.bottom._table"}, "layered.bottom._table"),
    ],
    indirect=["report"],
)
def test_a_private_name_of_another_room_is_found(report: Report, name: str) -> None:
    assert report.private == (Import("layered.right", name, 1),)
    assert not report.is_ordered


@pytest.mark.parametrize("report", [{"left/work.py": "from layered import right"}], indirect=True)
def test_the_longest_chain_counts_imports_in_any_direction(report: Report) -> None:
    assert report.chain == ("top", "left", "right", "bottom")


@pytest.mark.parametrize("report", [{f"flat{number}.py": "" for number in range(4)}], indirect=True)
def test_flat_files_are_limited(report: Report) -> None:
    assert report.flat_files == 5
    assert not report.is_within_limits


def test_long_chains_are_limited() -> None:
    chain = tuple("abcdefghi")
    assert not Report(frozenset(chain), 0, chain, (), ()).is_within_limits
    assert Report(frozenset(chain), 0, chain[:-1], (), ()).is_within_limits


def test_a_room_without_a_layer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unlisted").mkdir()
    for name, text in {"__init__": "", "top": "import unlisted.other", "other": ""}.items():
        (tmp_path / "unlisted" / f"{name}.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match="no layer of unlisted names other"):
        measure("unlisted", [["top"]])


@pytest.mark.parametrize(
    ("proxy", "tree", "status"),
    [
        ((), (), 0),
        ((Import("dragoman.proxy.http.tls", "dragoman.proxy.cli.main", 3),), (), 1),
        ((), (Import("dragoman.schemas", "dragoman.proxy", 1),), 1),
    ],
)
def test_the_command_prints_counts_and_fails_on_an_upward_import(
    proxy: tuple[Import, ...],
    tree: tuple[Import, ...],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    upward = {"dragoman.proxy": proxy, "dragoman": tree}

    def measure(package: str, layers: Layers) -> Report:
        return Report(frozenset({"cli", "http"}), 0, ("cli", "http"), upward[package], ())

    monkeypatch.setattr(layers, "measure", measure)
    assert main() == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "proxy: 2 rooms, 0 flat files, longest chain of rooms 2"
    assert f"  http: {len(proxy)} upward imports" in lines
    assert f"  schemas: {len(tree)} upward imports" in lines


def test_import_linter_checks_the_same_order() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    listed = {contract["name"]: contract.get("layers") for contract in contracts}
    assert listed["rooms of proxy"] == [" | ".join(names) for names in ROOMS]
    assert listed["layers"] == [" | ".join(f"dragoman.{name}" for name in names) for names in FOLDERS]


def test_the_project_keeps_its_order() -> None:
    assert main() == 0
