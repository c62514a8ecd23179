"""`python -m tools.release [--out DIR] [--tag]`: builds a release, checks it and, with `--tag`, tags the commit.

    1. exports the commit, so that nothing of the working tree gets into the files; makes the README's links absolute,
       and builds wheel and sdist
    2. checks their metadata and contents, and that the sdist builds the same wheel
    3. installs the wheel in an empty environment, where it has to answer requests (`.ci/smoke.py`)
    4. writes the SBOM of that environment (`tools.supply_chain`) and SHA256SUMS
    5. with --tag: tags the commit as vVERSION. Without it, says what prevents a tag

The files are in `dist/`. Nothing is uploaded and nothing is pushed. It needs git, uv and a package registry; the
versions of the packages are those of constraints.txt. Exit status: 0 success, 1 a check has failed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.metadata import Metadata

import dragoman
from tools.readme_links import find_relative_links, replace_relative_links

__all__ = [
    "ReleaseError",
    "check_metadata",
    "check_wheel",
    "compare_wheels",
    "export_commit",
    "list_obstacles",
    "main",
    "write_checksums",
]

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "local,export,tokens"  # those of constraints-hashes.txt


class ReleaseError(Exception):
    """A check has failed; the text says which."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tools.release", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="an empty folder; default: dist")
    parser.add_argument("--tag", action="store_true", help="tag the commit; default: only say whether that is possible")
    options = parser.parse_args(arguments)
    obstacles = list_obstacles(ROOT)
    try:
        if options.tag and obstacles:
            raise ReleaseError("\n".join(["this commit cannot be tagged:", *obstacles]))
        build_release(options.out.resolve())
    except (ReleaseError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    _tag(obstacles, options.tag)
    return 0


def build_release(out: Path) -> None:
    """Build, check and try the files, and write them to `out`. Raises ReleaseError, and CalledProcessError of tools."""
    out.mkdir(parents=True, exist_ok=True)
    if [*out.iterdir()]:
        raise ReleaseError(f"{out} is not empty")
    with TemporaryDirectory() as folder:
        source, second = Path(folder, "source"), Path(folder, "second")
        export_commit(source)
        _adapt_readme(source)
        _run("uv", "build", "--quiet", "--sdist", "--wheel", "--out-dir", out, source)
        [wheel], [sdist] = out.glob("*.whl"), out.glob("*.tar.gz")
        _run("uv", "build", "--quiet", "--wheel", "--out-dir", second, sdist)
        check_metadata(wheel)
        check_wheel(wheel, source)
        compare_wheels(wheel, next(second.glob("*.whl")))
        sbom = _try_wheel(wheel, Path(folder, "empty"), source)
        (out / f"dragoman-{dragoman.__version__}.cdx.json").write_text(sbom, "utf-8")
    (out / ".gitignore").unlink(missing_ok=True)  # uv writes one
    print(write_checksums(out))


def list_obstacles(root: Path) -> list[str]:
    """Why the commit that is checked out cannot be tagged; a line for each reason."""
    version = dragoman.__version__
    declared = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return [
        *([f"pyproject.toml has version {declared}, dragoman {version}"] if declared != version else []),
        *(["the working tree has changes"] if _git(root, "status", "--porcelain") else []),
        *([f"the tag v{version} exists"] if _git(root, "tag", "--list", f"v{version}") else []),
        *(
            []
            if f"\n## [{version}]" in (root / "CHANGELOG.md").read_text("utf-8")
            else [f"CHANGELOG.md lacks [{version}]"]
        ),
    ]


def check_metadata(wheel: Path) -> None:
    """Check the metadata as an index does. Raises ReleaseError."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        try:
            found = Metadata.from_email(archive.read(name), validate=True)
        except ExceptionGroup as errors:
            raise ReleaseError("\n".join(map(str, errors.exceptions))) from None
    if not found.description or found.description_content_type != "text/markdown":
        raise ReleaseError("the metadata has no description in Markdown")
    if links := find_relative_links(found.description):
        raise ReleaseError(f"the description has relative links, which an index cannot follow: {', '.join(links)}")
    if str(found.version) != dragoman.__version__:
        raise ReleaseError(f"the wheel has version {found.version}, dragoman {dragoman.__version__}")


def check_wheel(wheel: Path, source: Path) -> None:
    """The wheel has every module of the package, and nothing that is not the package. Raises ReleaseError."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    info = f"dragoman-{dragoman.__version__}.dist-info/"
    manual = f"dragoman-{dragoman.__version__}.data/data/share/man/man1/dragoman.1"
    outside = sorted(name for name in names if not name.startswith(("dragoman/", info)) and name != manual)
    if outside:
        raise ReleaseError(f"the wheel has files outside of the package: {', '.join(outside)}")
    modules = {str(file.relative_to(source)) for file in _walk(source / "dragoman") if file.suffix == ".py"}
    if missing := sorted(modules - names):
        raise ReleaseError(f"the wheel lacks {', '.join(missing)}")


def compare_wheels(wheel: Path, other: Path) -> None:
    """Both have the same files with the same bytes, their own lists of them included. Raises ReleaseError."""
    contents = [{name: _read(file, name) for name in zipfile.ZipFile(file).namelist()} for file in (wheel, other)]
    first, second = contents
    different = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    if different:
        raise ReleaseError(f"the sdist builds another wheel, which differs in {', '.join(different)}")


def write_checksums(folder: Path) -> str:
    """Write SHA256SUMS for the files of the folder, as `sha256sum --check` reads it; return its text."""
    lines = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(folder.iterdir()))
    text = "".join(lines)
    (folder / "SHA256SUMS").write_text(text, "utf-8")
    return text


def export_commit(folder: Path) -> None:
    """The files of the commit, without what git ignores."""
    archive = folder.with_suffix(".tar")
    _run("git", "archive", "--format", "tar", "--output", archive, "HEAD")
    with tarfile.open(archive) as files:
        # Python 3.11.2, as Debian 12 has it, knows no filters.
        files.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        files.extractall(folder)


def _adapt_readme(source: Path) -> None:
    """Let the links of the README lead to the repository that pyproject.toml names as `Source` among its urls."""
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    readme, repository = source / "README.md", project.get("urls", {}).get("Source")
    text = replace_relative_links(readme.read_text("utf-8"), repository, f"v{dragoman.__version__}")
    readme.write_text(text, "utf-8")


def _try_wheel(wheel: Path, environment: Path, source: Path) -> str:
    """Install the wheel in an empty environment and ask it; return the SBOM of the environment."""
    python = environment / "bin" / "python"
    _run("uv", "venv", "--quiet", environment)
    requirement = f"dragoman[{EXTRAS}] @ {wheel.as_uri()}"
    _run("uv", "pip", "install", "--quiet", "--python", python, "-c", source / "constraints.txt", requirement)
    _run(python, source / ".ci" / "smoke.py", environment / "bin" / "dragoman")
    sbom = [str(python), "-m", "tools.supply_chain", "sbom"]
    return subprocess.run(sbom, cwd=source, check=True, capture_output=True, text=True).stdout


def _tag(obstacles: list[str], wanted: bool) -> None:
    tag = f"v{dragoman.__version__}"
    if wanted:
        _run("git", "tag", "--annotate", tag, "--message", f"dragoman {dragoman.__version__}")
        print(f"tagged as {tag}; nothing was pushed or uploaded")
    elif obstacles:
        print("\n".join([f"no tag {tag}, and --tag would refuse it:", *obstacles]))
    else:
        print(f"no tag {tag}: --tag makes it")


def _walk(folder: Path) -> Iterator[Path]:
    """The files below a folder, through links."""
    for place, _, names in os.walk(folder, followlinks=True):
        yield from (Path(place, name) for name in names)


def _read(file: Path, name: str) -> bytes:
    with zipfile.ZipFile(file) as archive:
        return archive.read(name)


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def _run(*words: str | Path) -> None:
    """Run a tool. Files get the time of the commit, so that the same commit makes the same files."""
    time = _git(ROOT, "log", "-1", "--format=%ct")
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": time})


if __name__ == "__main__":
    sys.exit(main())
