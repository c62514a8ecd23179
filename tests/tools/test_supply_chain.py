"""What dragoman is built of: lowest versions, hashes, and the list of components."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tools.supply_chain import create_sbom, find_problems, main

ROOT = Path(__file__).resolve().parents[2]
FILES = ("pyproject.toml", "constraints.txt", "constraints-hashes.txt")


def test_no_known_vulnerability_is_admitted_and_the_hashes_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """If it fails after a change of constraints.txt: python -m tools.supply_chain hashes."""
    assert main(["check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        (
            "pyproject.toml",
            "orjson>=3.11.6",
            "orjson>=3.11",
            "pyproject.toml admits orjson>=3.11, and orjson has known",
        ),
        ("pyproject.toml", "jinja2>=3.1.6", "jinja2", "pyproject.toml admits jinja2, and jinja2 has known"),
        (
            "constraints.txt",
            "aiohttp==3.14.5",
            "aiohttp==3.13.3",
            "constraints.txt has aiohttp 3.13.3, which has known",
        ),
        ("constraints.txt", "yarl==", "yarl==0", "constraints-hashes.txt has yarl"),
        ("constraints-hashes.txt", "orjson==", "orjson_==", "constraints-hashes.txt lacks orjson"),
    ],
)
def test_problems_are_found(tmp_path: Path, name: str, old: str, new: str, problem: str) -> None:
    for file in FILES:
        shutil.copy(ROOT / file, tmp_path)
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    assert [line for line in find_problems(tmp_path) if line.startswith(problem)]


def test_no_file_of_the_supply_chain_has_an_address() -> None:
    for file in (*FILES, "tools/advisories.json"):
        assert "://" not in (ROOT / file).read_text()


def test_the_list_of_components() -> None:
    sbom = create_sbom()
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    assert sbom["metadata"]["component"]["name"] == "dragoman"
    names = [one["name"] for one in sbom["components"]]
    assert names == sorted(set(names))
    assert {"aiohttp", "orjson", "multidict", "pydantic-core"} <= {*names}
    assert not {"pytest", "mypy", "dragoman"} & {*names}
    refs = {sbom["metadata"]["component"]["bom-ref"], *(one["bom-ref"] for one in sbom["components"])}
    assert {one["ref"] for one in sbom["dependencies"]} == refs
    assert all(refs >= {*one["dependsOn"]} for one in sbom["dependencies"])
    assert create_sbom() == sbom
    assert "://" not in json.dumps(sbom)
