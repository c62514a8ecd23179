"""Reading YAML: errors, limits, positions."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.proxy.config.document import Document
from dragoman.proxy.config.load import ConfigErrors, check_text, load
from dragoman.proxy.config.yaml_reader import parse_document, read_document


def codes(path: Path) -> list[str]:
    with pytest.raises(ConfigErrors) as caught:
        load(path, {})
    return [problem.code for problem in caught.value.problems]


def test_the_error_for_a_missing_file_names_the_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigErrors) as caught:
        read_document(Path("none.yaml"))
    text = str(caught.value)
    assert text.startswith("none.yaml: error[no-file]: No such file or directory")
    assert str(tmp_path / "none.yaml") in text
    assert "dragoman init" in text


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match=r"Is a directory \(mode drwx(.|\n)*if you mount it into a container"):
        read_document(tmp_path)


def test_the_error_for_a_forbidden_file_names_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "a.yaml").write_text("{}")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigErrors, match=rf"Permission denied \(mode -rw(.|\n)*runs as user {os.geteuid()},"):
        read_document(tmp_path / "a.yaml")


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    with pytest.raises(ConfigErrors, match="Too many levels of symbolic links"):
        read_document(loop)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.touch(mode=0o000)
    with pytest.raises(ConfigErrors, match=r"Permission denied \(mode ----------\)"):
        read_document(file)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    assert codes(file) == ["too-large"]


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n", b"a: \x00", b"a: \xc2\x85b", b"\xff\xfea\x00"])
def test_binary_data_is_refused(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(data)
    assert codes(file) == ["not-text"]


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfserver:\r\n  port: 1\r\nsever: 2\r\n")
    document = read_document(file)
    assert document.root.plain == {"server": {"port": 1}, "sever": 2}
    assert document.line_of("sever") == 3


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(ConfigErrors, match="nested more than 64 levels"):
        parse_document(Document("x", []), "a: " + "[" * 500)


def test_scalars_are_those_of_yaml_1_2() -> None:
    text = "{a: 0o17, b: 0x1F, c: yes, d: 2024-05-01, e: 007, f: 1e3, g: .inf, h: true, i: ~, j: 12_000, k: '1'}"
    assert parse_document(Document("x", []), text).root.plain == {
        "a": 15, "b": 31, "c": "yes", "d": "2024-05-01", "e": 7, "f": 1000.0, "g": float("inf"), "h": True, "i": None,
        "j": 12000, "k": "1",
    }  # fmt: skip


def test_aliases_are_copies_with_their_own_variables() -> None:
    text = 'providers: {p: &p {dialect: openai, base_url: "${A}"}, q: *p}\nmodels: {m: {targets: [{provider: q}]}}'
    config = check_text(text, "x", {"A": "https://a/v1"}).config
    assert config.providers["p"] == config.providers["q"]
    assert config.providers["q"].base_url == "https://a/v1"


@example("!0\n:")
@given(st.text(alphabet=st.sampled_from("ab:-[]{},&*!|>'\"#%@\n\t $0.~<?"), max_size=60))
def test_any_text_is_explained_or_read(text: str) -> None:
    try:
        check_text(text, "x", {})
    except ConfigErrors as errors:
        assert errors.problems
        assert all(line < 5000 for line in map(len, str(errors).splitlines()))


KEYS = [
    "server",
    "host",
    "keys",
    "providers",
    "models",
    "p",
    "dialect",
    "base_url",
    "api_key",
    "targets",
    "provider",
    "tls",
]
KEYS += [
    "fallbacks",
    "weight",
    "lacks",
    "strip",
    "headers",
    "timeouts",
    "total",
    "connect",
    "profiles",
    "policy",
    "model",
]
SCALARS = st.sampled_from(
    [None, True, -1, 0, 3.5, "", "p", "m", "openai", "https://h/v1", "${X}", "5s", "*", "nan", "http://["]
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=20,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("server", "keys", "providers", "models", "timeouts"), TREES)))
def test_any_tree_is_explained_or_accepted(tree: dict[str, object]) -> None:
    import json

    try:
        check_text(json.dumps(tree), "x", {})
    except ConfigErrors as errors:
        assert any(problem.severity == "error" for problem in errors.problems)
