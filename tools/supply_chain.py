"""`python -m tools.supply_chain`: what dragoman is built of, and whether that is known to be safe.

    sbom      prints what is installed as a CycloneDX 1.6 document: dragoman, the packages that it requires, and those
              of every extra that is installed as a whole
    hashes    writes constraints-hashes.txt: the packages of constraints.txt that dragoman and its extras `local`,
              `export` and `tokens` require, with the hashes of all their files, for `pip install --require-hashes`
    check     exits with status 1 if a version that pyproject.toml or constraints.txt admits has a known vulnerability,
              or if constraints-hashes.txt has other versions than constraints.txt

The known vulnerabilities are in `tools/advisories.json`: for each package the first version without any, and their
names. Neither file has an address: hashes need none, and an installer gets the files from the index that it is set to.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from dragoman.contract.json_types import JsonObject

__all__ = ["create_sbom", "find_problems", "main"]

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("local", "export", "tokens")
"""The extras that one environment can have together, and whose hashes are kept."""

_NAMESPACE = uuid.UUID("6ba7b814-9dad-11d1-80b4-00c04fd430c8")  # that of X.500 names, RFC 9562
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_LOWER = (">=", "==", "~=", ">")


def main(arguments: list[str]) -> int:
    """Run one of the commands; return the exit status."""
    match arguments:
        case ["sbom"]:
            print(json.dumps(create_sbom(), indent=2))
        case ["hashes"]:
            (ROOT / "constraints-hashes.txt").write_text(_compile_hashes())
        case ["check"]:
            problems = find_problems(ROOT)
            print("\n".join(problems) or "no known vulnerabilities, and the hashes belong to the constraints")
            return 1 if problems else 0
        case _:
            print(__doc__)
            return 2
    return 0


def create_sbom() -> JsonObject:
    """The document. It depends only on what is installed: the same packages have the same serial number."""
    found = dict(sorted(_collect_installed().items()))
    root = found.pop("dragoman")
    body: JsonObject = {
        "metadata": {"component": {"type": "application", **_describe(root[0])}},
        "components": [{"type": "library", **_describe(one)} for one, _ in found.values()],
        "dependencies": [
            {"ref": _purl(one), "dependsOn": sorted(_purl(found[name][0]) for name in names)}
            for one, names in [root, *found.values()]
        ],
    }
    serial = uuid.uuid5(_NAMESPACE, json.dumps(body, sort_keys=True))
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1, **body}


def find_problems(root: Path) -> list[str]:
    """What is wrong with the requirements, constraints and hashes in a folder; a line for each problem."""
    fixed = {name: row["fixed"] for name, row in json.loads((ROOT / "tools/advisories.json").read_text()).items()}
    pinned = _read_pins(root / "constraints.txt")
    hashed = _read_pins(root / "constraints-hashes.txt")
    problems = [
        f"pyproject.toml admits {requirement}, and {name} has known vulnerabilities before {fixed[name]}"
        for requirement in _read_requirements(root)
        if (name := canonicalize_name(requirement.name)) in fixed
        and _lowest(requirement.specifier) < Version(fixed[name])
    ]
    problems += [
        f"constraints.txt has {name} {pinned[name]}, which has known vulnerabilities before {first}"
        for name, first in fixed.items()
        if name in pinned and Version(pinned[name]) < Version(first)
    ]
    problems += [
        f"constraints-hashes.txt has {name} {version}, constraints.txt has {pinned.get(name)}"
        for name, version in hashed.items()
        if pinned.get(name) != version
    ]
    required = {canonicalize_name(one.name) for one in _read_requirements(root, EXTRAS)}
    return problems + [f"constraints-hashes.txt lacks {name}" for name in sorted(required - hashed.keys())]


def _compile_hashes() -> str:
    extras = [part for extra in EXTRAS for part in ("--extra", extra)]
    command = ["uv", "pip", "compile", "pyproject.toml", *extras, "-c", "constraints.txt", "--quiet"]
    options = ["--generate-hashes", "--no-annotate", "--no-header"]
    return subprocess.run([*command, *options], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _collect_installed() -> Mapping[str, tuple[Distribution, set[str]]]:
    """The installed distributions that dragoman leads to, and the names of those that each requires."""
    found: dict[str, tuple[Distribution, set[str]]] = {}
    waiting = [("dragoman", extra) for extra in ("", *_installed_extras())]
    done: set[tuple[str, str]] = set()
    while waiting:
        name, extra = place = waiting.pop()
        if place in done:
            continue
        done.add(place)
        one = distribution(name)
        _, names = found.setdefault(name, (one, set()))
        for requirement in _requirements(one, extra):
            required = canonicalize_name(requirement.name)
            if required != name:
                names.add(required)
            waiting += [(required, further) for further in ("", *requirement.extras)]
    return found


def _installed_extras() -> Iterator[str]:
    one = distribution("dragoman")
    for extra in one.metadata.get_all("Provides-Extra") or []:
        own = [found for found in _requirements(one, extra) if found not in [*_requirements(one, "")]]
        if all(_is_installed(requirement.name) for requirement in own):
            yield extra


def _requirements(one: Distribution, extra: str) -> Iterator[Requirement]:
    """The requirements of a distribution that apply on this machine, for one extra or without any."""
    for line in one.requires or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _describe(one: Distribution) -> JsonObject:
    described: JsonObject = {"name": canonicalize_name(one.name), "version": one.version, "purl": _purl(one)}
    if "License-Expression" in one.metadata:
        described["licenses"] = [{"expression": one.metadata["License-Expression"]}]
    return {"bom-ref": _purl(one), **described}


def _purl(one: Distribution) -> str:
    return f"pkg:pypi/{canonicalize_name(one.name)}@{one.version}"


def _read_requirements(root: Path, extras: tuple[str, ...] | None = None) -> list[Requirement]:
    """The requirements in pyproject.toml: those of all extras, or of these."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in extras or optional for line in optional[name])]
    return [Requirement(line) for line in lines]


def _read_pins(path: Path) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in _PINNED.findall(path.read_text())}


def _lowest(specifier: SpecifierSet) -> Version:
    return max((Version(one.version) for one in specifier if one.operator in _LOWER), default=Version("0"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
