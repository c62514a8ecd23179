"""Case files: valid files become cases, invalid files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.contract.case_files import CaseFileError, load_cases, read_case_file

GOOD = """
protocol: chat
source: a reference
cases:
  - id: chat/errors/${each.name}
    title: "${each.field} is refused"
    level: MUST
    dialects: [openai, mindie]
    each:
      - {name: one, field: top_p, value: 2}
      - {name: two, field: temperature, value: hot}
    steps:
      - request: {body: {"${each.field}": "${each.value}", kept: "${saved.id}"}, for: {mindie: {body: {seed: 1}}}}
        save: {id: id}
        expect: {status: {openai: 400, else: [422, 400]}, checks: [error_shape, {error_names: "${each.field}"}]}
"""


def write_file(folder: Path, text: str) -> Path:
    file = folder / "cases.yaml"
    file.write_text(text, "utf-8")
    return file


def test_each_makes_a_case_for_every_value_and_dialect(tmp_path: Path) -> None:
    cases = read_case_file(write_file(tmp_path, GOOD))
    assert [(case.id, case.dialect) for case in cases] == [
        ("chat/errors/one", "openai"),
        ("chat/errors/one", "mindie"),
        ("chat/errors/two", "openai"),
        ("chat/errors/two", "mindie"),
    ]
    assert cases[0].steps[0].request["body"] == {"top_p": 2, "kept": "${saved.id}"}
    assert cases[0].steps[0].expect.status == (400,)
    assert cases[1].steps[0].expect.status == (422, 400)
    assert cases[2].steps[0].expect.checks[1].arg == "temperature"
    assert cases[0].title == "top_p is refused"


def test_check_that_no_reference_demands_is_at_most_a_recommendation(tmp_path: Path) -> None:
    checks = read_case_file(write_file(tmp_path, GOOD))[0].steps[0].expect.checks
    assert [(check.name, check.level) for check in checks] == [("error_shape", "SHOULD"), ("error_names", "SHOULD")]


def test_form_of_an_error_is_a_must_where_a_proxy_is_driven(tmp_path: Path) -> None:
    driven = GOOD.replace("    level: MUST", "    level: MUST\n    upstreams: [openai]")
    checks = read_case_file(write_file(tmp_path, driven))[0].steps[0].expect.checks
    assert [check.level for check in checks] == ["MUST", "SHOULD"]


def test_tokens_of_a_request_that_must_be_refused_are_counted(tmp_path: Path) -> None:
    limited = GOOD.replace("value: hot", "value: hot, limit: 1").replace("kept:", "max_tokens: 8, kept:")
    case = read_case_file(write_file(tmp_path, limited))[0]
    assert (case.max_tokens, case.hostile, case.is_refusal) == (8, False, True)


@pytest.mark.parametrize("limit", ["-1", "1.5", "many", "null"])
def test_request_with_a_broken_token_limit_is_hostile(tmp_path: Path, limit: str) -> None:
    file = write_file(tmp_path, GOOD.replace("kept:", f"max_tokens: {limit}, kept:"))
    assert all(case.hostile for case in read_case_file(file))


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("error_shape", "error_form", "no check 'error_form'"),
        ("[error_shape,", "[{error_shape: 1},", "takes no argument"),
        ('{error_names: "${each.field}"}', "{error_names: 3}", "the argument of error_names"),
        ("level: MUST", "level: WILL", "'WILL' is not one of"),
        ("source: a reference", "", "the case names no source"),
        ("    title:", "    tittle:", "tittle"),
        ("status: {openai: 400", "status: {openai: many", "many"),
        ("protocol: chat", "protocol: [", "while parsing"),
        ("- request: {body:", "- request: {leave: begun, body:", "only a fake provider can observe it"),
        ("        save:", "        upstream: {script: [cut]}\n        save:", "names no `upstreams`"),
    ],
)
def test_error_names_the_file_and_the_problem(tmp_path: Path, before: str, after: str, problem: str) -> None:
    assert before in GOOD
    file = write_file(tmp_path, GOOD.replace(before, after, 1))
    with pytest.raises(CaseFileError, match=r"cases\.yaml") as caught:
        read_case_file(file)
    assert problem in str(caught.value)


def test_duplicate_id_is_refused(tmp_path: Path) -> None:
    write_file(tmp_path, GOOD)
    (tmp_path / "more.yaml").write_text(GOOD, "utf-8")
    with pytest.raises(CaseFileError, match="two cases have the id chat/errors/one in openai"):
        load_cases(tmp_path)


def test_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError, match="has no case file"):
        load_cases(tmp_path)


def test_built_in_cases_are_valid() -> None:
    cases = load_cases()
    assert all(case.source and case.title for case in cases)
    assert all(case.id.startswith(f"{case.protocol}/") or case.protocol == "models" for case in cases)
