"""The data of the dialects: what is wrong in it is named, and cases name dialects by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.contract import corpus, dialects, target
from dragoman.contract.corpus import CaseErrors, load_cases
from dragoman.contract.dialects import BadData, Dialect, dialect

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


def written(folder: Path, word: str, upstream: str = "all") -> Path:
    (folder / "one.yaml").write_text(CASES.format(word=word, upstream=upstream), "utf-8")
    return folder


def test_a_case_names_dialects(tmp_path: Path) -> None:
    [case] = load_cases(written(tmp_path, "mindie", "azure"))
    assert (case.dialect, case.upstreams, case.steps[0].expect.status) == ("mindie", ("azure",), (201,))


def test_a_tag_names_each_dialect_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tagged(name: str) -> Dialect:
        return replace(dialect(name), tags=("llama",)) if name in ("azure", "mindie") else dialect(name)

    monkeypatch.setattr(corpus, "dialect", tagged)
    monkeypatch.setattr(target, "dialect", tagged)
    cases = load_cases(written(tmp_path, "llama", "llama"))
    assert [case.dialect for case in cases] == ["azure", "mindie"]
    assert {(case.upstreams, case.steps[0].expect.status) for case in cases} == {(("azure", "mindie"), (201,))}


@pytest.mark.parametrize(("word", "upstream"), [("mindy", "all"), ("mindie", "azur")])
def test_a_word_that_names_none_is_an_error(word: str, upstream: str, tmp_path: Path) -> None:
    with pytest.raises(
        CaseErrors, match=rf"there is no dialect '{word if word != 'mindie' else upstream}'; there are:"
    ):
        load_cases(written(tmp_path, word, upstream))


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
def test_wrong_data_is_named(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "groq").mkdir()
    (tmp_path / "groq/fake.json").write_text(text, "utf-8")
    monkeypatch.setattr(dialects, "_ROOT", tmp_path)
    monkeypatch.setattr(dialects, "DIALECTS", ("groq",))
    with pytest.raises(BadData, match=r"adapters/groq/fake\.json: ") as caught:
        dialect("groq")
    assert said in str(caught.value)
