"""The checks of a release, on small wheels and repositories; `.ci/run` builds a whole release."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import dragoman
from tools import release
from tools.release import (
    ReleaseError,
    check_metadata,
    check_wheel,
    compare_wheels,
    export_commit,
    list_obstacles,
    main,
    write_checksums,
)

VERSION = dragoman.__version__
INFO = f"dragoman-{VERSION}.dist-info"
HEAD = f"Metadata-Version: 2.4\nName: dragoman\nVersion: {VERSION}\nDescription-Content-Type: text/markdown\n"
METADATA = f"{HEAD}\n# dragoman\n"


def write_wheel(file: Path, **contents: str) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
    return file


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A package with a module, and one behind a link, as dragoman's folders are."""
    (tmp_path / "dragoman").mkdir()
    (tmp_path / "proxy").mkdir()
    (tmp_path / "dragoman" / "__init__.py").touch()
    (tmp_path / "proxy" / "__init__.py").touch()
    (tmp_path / "dragoman" / "proxy").symlink_to("../proxy")
    return tmp_path


WHOLE = {"dragoman/__init__.py": "", "dragoman/proxy/__init__.py": "", f"{INFO}/RECORD": ""}


def test_a_wheel_with_the_package_is_accepted(source: Path) -> None:
    check_wheel(write_wheel(source / "a.whl", **WHOLE), source)


def test_a_wheel_may_bring_the_manual_page(source: Path) -> None:
    manual = {f"dragoman-{VERSION}.data/data/share/man/man1/dragoman.1": ""}
    check_wheel(write_wheel(source / "a.whl", **WHOLE, **manual), source)


@pytest.mark.parametrize("name", ["tools/release.py", "tests/test_x.py", "proxy/__init__.py", "docs/README.md"])
def test_a_wheel_with_other_files_is_refused(name: str, source: Path) -> None:
    with pytest.raises(ReleaseError, match=f"outside of the package: {name}"):
        check_wheel(write_wheel(source / "a.whl", **WHOLE, **{name: ""}), source)


def test_a_wheel_that_lacks_a_module_is_refused(source: Path) -> None:
    rest = {name: text for name, text in WHOLE.items() if "proxy" not in name}
    with pytest.raises(ReleaseError, match=r"lacks dragoman/proxy/__init__\.py"):
        check_wheel(write_wheel(source / "a.whl", **rest), source)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (METADATA.replace("Name: dragoman\n", ""), "name"),
        (METADATA.replace(VERSION, "not a version"), "version"),
        (METADATA.replace(VERSION, "999.0"), "999.0"),
        (METADATA.replace("text/markdown", "text/x-rst"), "no description in Markdown"),
        (f"{HEAD}\n", "no description in Markdown"),
        (f"{METADATA}[Clients](docs/clients.md)\n", r"relative links, .*: docs/clients\.md"),
    ],
)
def test_wrong_metadata_are_refused(text: str, error: str, tmp_path: Path) -> None:
    check_metadata(write_wheel(tmp_path / "good.whl", **{f"{INFO}/METADATA": METADATA}))
    with pytest.raises(ReleaseError, match=error):
        check_metadata(write_wheel(tmp_path / "bad.whl", **{f"{INFO}/METADATA": text}))


def test_wheels_that_differ_are_refused(tmp_path: Path) -> None:
    first = write_wheel(tmp_path / "a.whl", same="1", other="1")
    compare_wheels(first, write_wheel(tmp_path / "b.whl", other="1", same="1"))
    with pytest.raises(ReleaseError, match="differs in new, other"):
        compare_wheels(first, write_wheel(tmp_path / "c.whl", same="1", other="2", new=""))


def test_checksums_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    sums = [hashlib.sha256(data).hexdigest() for data in (b"1", b"2")]
    assert write_checksums(tmp_path) == f"{sums[0]}  a\n{sums[1]}  b\n"
    assert (tmp_path / "SHA256SUMS").read_text() == f"{sums[0]}  a\n{sums[1]}  b\n"


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_obstacles_to_a_tag_are_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "{VERSION}"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{VERSION}]\n")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "all")
    assert list_obstacles(tmp_path) == []
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    assert list_obstacles(tmp_path) == ["the working tree has changes", f"CHANGELOG.md lacks [{VERSION}]"]
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "9"\n')
    git(tmp_path, "commit", "--all", "--message", "more")
    git(tmp_path, "tag", f"v{VERSION}")
    wrong, exists, *_ = list_obstacles(tmp_path)
    assert (wrong, exists) == (f"pyproject.toml has version 9, dragoman {VERSION}", f"the tag v{VERSION} exists")


def test_a_commit_is_exported_with_a_python_that_knows_no_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As 3.11.2, which Debian 12 has."""
    repository, folder, extract = tmp_path / "repository", tmp_path / "exported", tarfile.TarFile.extractall
    repository.mkdir()
    (repository / "file").write_text("text")
    git(repository, "init")
    git(repository, "add", ".")
    git(repository, "commit", "--message", "all")
    (repository / "ignored").touch()
    monkeypatch.setattr(release, "ROOT", repository)
    monkeypatch.setattr(tarfile.TarFile, "extractall", lambda archive, path: extract(archive, path))
    export_commit(folder)
    assert [file.name for file in folder.iterdir()] == ["file"]


def test_a_folder_with_files_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dragoman-0.0.1.tar.gz").touch()
    assert main(["--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path} is not empty\n"
    assert [file.name for file in tmp_path.iterdir()] == ["dragoman-0.0.1.tar.gz"]
