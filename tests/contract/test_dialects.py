"""The data of the dialects: errors name what is invalid, and cases select dialects by name or tag."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.contract import case_files, dialects
from dragoman.contract.case_files import CaseFileError, load_cases
from dragoman.contract.dialects import Dialect, DialectDataError, load_dialect

CASES = """
protocol: chat
source: none
cases:
- id: chat/one/x
  title: x
  level: MUST
  dialects: [{word}]
  upstreams: [{upstream}]
  steps:
  - request: {{body: {{}}, for: {{{word}: {{body: {{own: 1}}}}}}}}
    expect: {{status: {{{word}: 201, else: 200}}}}
"""


def write_cases(folder: Path, word: str, upstream: str = "all") -> Path:
    (folder / "one.yaml").write_text(CASES.format(word=word, upstream=upstream), "utf-8")
    return folder


def test_a_case_names_dialects(tmp_path: Path) -> None:
    [case] = load_cases(write_cases(tmp_path, "mindie", "azure"))
    assert (case.dialect, case.upstreams, case.steps[0].expect.status) == ("mindie", ("azure",), (201,))


def test_a_tag_names_each_dialect_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load_tagged(name: str) -> Dialect:
        return replace(load_dialect(name), tags=("llama",)) if name in ("azure", "mindie") else load_dialect(name)

    monkeypatch.setattr(case_files, "load_dialect", load_tagged)
    cases = load_cases(write_cases(tmp_path, "llama", "llama"))
    assert [case.dialect for case in cases] == ["azure", "mindie"]
    assert {(case.upstreams, case.steps[0].expect.status) for case in cases} == {(("azure", "mindie"), (201,))}


@pytest.mark.parametrize(("word", "upstream"), [("mindy", "all"), ("mindie", "azur")])
def test_an_unknown_name_is_an_error(word: str, upstream: str, tmp_path: Path) -> None:
    with pytest.raises(
        CaseFileError, match=rf"there is no dialect '{word if word != 'mindie' else upstream}'; there are:"
    ):
        load_cases(write_cases(tmp_path, word, upstream))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", '"paths" is a required property'),
        ('{"paths": {"poems": ["/x"]}, "errors": {}, "replies": {}, "profiles": {"actual": {}}}', "paths: "),
        (
            '{"paths": {"chat": ["/x"]}, "errors": {"forms": [{"body": {}}], "messages": ["m"]}, '
            '"replies": {"chat": {"usage": "now and then"}}, "profiles": {"actual": {}}}',
            "replies/chat/usage: ",
        ),
    ],
)
def test_invalid_data_is_an_error(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "groq").mkdir()
    (tmp_path / "groq/fake.json").write_text(text, "utf-8")
    monkeypatch.setattr(dialects, "_ROOT", tmp_path)
    monkeypatch.setattr(dialects, "DIALECTS", ("groq",))
    with pytest.raises(DialectDataError, match=r"adapters/groq/fake\.json: ") as caught:
        load_dialect("groq")
    assert said in str(caught.value)
