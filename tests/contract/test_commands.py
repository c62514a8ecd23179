"""The commands: runs, reports, recordings, known gaps, and the exit status."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from dragoman.contract.commands import app
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.progress import Progress
from dragoman.contract.reports.json_report import read_report
from dragoman.contract.servers import FakeServers
from dragoman.contract.session import Session
from dragoman.contract.verdicts import CaseResult

KEY = "sk-very-secret"
CASES = """
protocol: chat
source: a reference
cases:
  - id: chat/text/plain
    title: it answers
    level: MUST
    dialects: [openai]
    max_tokens: 8
    steps:
      - request: {body: {messages: [{role: user, content: hi}], max_tokens: 8}}
        expect: {status: 200, schema: reply, checks: [has_text]}
  - id: chat/text/broken
    title: it never does this | <b>
    level: MUST
    dialects: [openai]
    steps:
      - request: {body: {messages: [{role: user, content: hi}], max_tokens: 8, n: 2}}
        expect: {status: 200, checks: [{choices: 3}]}
  - id: chat/text/warned
    title: it should not do this
    level: SHOULD
    dialects: [openai]
    steps:
      - request: {body: {messages: [{role: user, content: hi}], stream: true}}
        expect: {status: 200, schema: event, checks: [sse.framing, done, no_text]}
"""
runner = CliRunner()


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    with FakeServers() as start:
        yield start("openai", api_key=KEY)


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "some.yaml").write_text(CASES, "utf-8")
    return folder


def run(fake: FakeProvider, cases: Path, *more: str, url: str | None = None) -> tuple[int, str]:
    words = [
        "run",
        "--base-url",
        url or fake.base_url,
        "--model",
        "fake-model",
        "--api-key",
        KEY,
        "--cases",
        str(cases),
    ]
    result = runner.invoke(app, [*words, *more])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_failures_give_status_1_and_all_reports_are_written(fake: FakeProvider, cases: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / f"report.{name}" for name in ("json", "junit", "markdown", "html", "badge")}
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    status, output = run(fake, cases, *options)
    assert status == 1
    assert "fail         chat/text/broken: choices: the choices are [0, 1], expected 0 to 2" in output
    report = read_report(files["json"])
    assert report["counts"] == {"pass": 1, "warn": 1, "fail": 1, "inconclusive": 0, "skip": 0, "error": 0}
    suite = ElementTree.fromstring(files["junit"].read_text("utf-8"))
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert suite.find("testcase/failure") is not None
    assert "| ❌ | `chat/text/broken` | MUST |" in files["markdown"].read_text("utf-8")
    assert json.loads(files["badge"].read_text("utf-8"))["message"] == "1/3, 1 warn"
    html = files["html"].read_text("utf-8")
    assert "it never does this | \\u003cb\\u003e" in html
    assert "<b>" not in html
    assert KEY not in "".join(file.read_text("utf-8") for file in files.values())


def test_recording_replays_without_an_endpoint(fake: FakeProvider, cases: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    run(fake, cases, "--record", str(folder), "--json", str(tmp_path / "before.json"))
    assert len(list(folder.glob("*.json"))) == 3
    assert KEY not in "".join(file.read_text("utf-8") for file in folder.glob("*.json"))
    seen = len(fake.requests)
    status, _ = run(fake, cases, "--replay", str(folder), "--json", str(tmp_path / "after.json"), url="http://gone/v1")
    before, after = read_report(tmp_path / "before.json"), read_report(tmp_path / "after.json")
    assert (status, after["counts"], len(fake.requests)) == (1, before["counts"], seen)


def test_known_gaps_may_fail_and_what_passes_is_reported(fake: FakeProvider, cases: Path, tmp_path: Path) -> None:
    known = tmp_path / "gaps.yaml"
    known.write_text("chat/text/broken: this endpoint gives two choices\n", "utf-8")
    assert run(fake, cases, "--expect", str(known))[0] == 0
    known.write_text("chat/text/broken: known\nchat/text/plain: never answers\nchat/other/*: gone\n", "utf-8")
    status, output = run(fake, cases, "--expect", str(known))
    assert status == 0
    assert "chat/text/plain passes although it is expected to fail" in output
    assert "chat/other/*, which matches no case" in output


def test_new_failure_is_no_known_gap(fake: FakeProvider, cases: Path, tmp_path: Path) -> None:
    known = tmp_path / "gaps.yaml"
    known.write_text("chat/text/broken: this endpoint gives two choices\n", "utf-8")
    fake.behaviour = "no-choices"
    assert run(fake, cases, "--expect", str(known))[0] == 1


def test_first_file_of_known_gaps_is_written_from_a_report(fake: FakeProvider, cases: Path, tmp_path: Path) -> None:
    report, gaps = tmp_path / "report.json", tmp_path / "gaps.yaml"
    assert run(fake, cases, "--json", str(report))[0] == 1
    written = runner.invoke(app, ["expect", str(report), "--reason", 'known: "two" choices'])
    assert written.exit_code == 0
    assert "# choices: the choices are [0, 1], expected 0 to 2\nchat/text/broken:" in written.output
    gaps.write_text(written.output, "utf-8")
    assert run(fake, cases, "--expect", str(gaps))[0] == 0
    assert runner.invoke(app, ["expect", str(report), "--reason", " "]).exit_code == 2


@pytest.mark.parametrize("name", ["json", "junit", "markdown", "html", "badge"])
def test_report_that_cannot_be_written_stops_the_run_before_it_begins(
    fake: FakeProvider, cases: Path, tmp_path: Path, name: str
) -> None:
    status, output = run(fake, cases, f"--{name}", str(tmp_path / "no" / "x"))
    assert (status, f"there is no folder {tmp_path}" in output.replace("\n", "")) == (2, True)
    assert "this is a folder" in run(fake, cases, f"--{name}", str(tmp_path))[1]
    assert not fake.requests


def test_folder_of_recordings_is_checked_before_the_run(fake: FakeProvider, cases: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", "utf-8")
    status, output = run(fake, cases, "--record", str(file / "folder"))
    assert (status, "Not a directory" in output.replace("\n", " ")) == (2, True)
    assert not fake.requests


def test_results_outlive_a_report_that_cannot_be_written(
    fake: FakeProvider, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the page is gone when the run ends."""
    html, junit, rescued = tmp_path / "page" / "x.html", tmp_path / "junit.xml", tmp_path / "rescued"
    html.parent.mkdir()
    rescued.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(rescued))
    monkeypatch.setattr(
        Session, "_build_report", lambda *of, report=Session._build_report: (html.parent.rmdir(), report(*of))[1]
    )
    status, output = run(fake, cases, "--html", str(html), "--junit", str(junit))
    assert status == 2
    assert "x.html: No such file or directory" in output.replace("\n", "")
    (file,) = rescued.glob("*.json")
    assert str(file) in output.replace("\n", "")
    assert read_report(file)["counts"]["fail"] == 1
    assert junit.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_writes_the_results_so_far(
    number: signal.Signals, fake: FakeProvider, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(progress: Progress, result: CaseResult) -> None:
        if number == signal.SIGTERM and signal.getsignal(number) is not signal.SIG_DFL:
            signal.raise_signal(number)  # its default action would end the tests
        elif number == signal.SIGINT:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "show_result", interrupt)
    report = tmp_path / "report.json"
    assert run(fake, cases, "--json", str(report))[0] != 0
    assert [case["verdict"] for case in read_report(report)["cases"]] == ["pass", "skip", "skip"]


def test_deep_json_is_recorded(fake: FakeProvider, tmp_path: Path) -> None:
    folder, report = tmp_path / "recordings", tmp_path / "report.json"
    words = ["run", "--base-url", fake.base_url, "--model", "fake-model", "--api-key", KEY, "--only", "chat/body/*"]
    runner.invoke(app, [*words, "--record", str(folder), "--json", str(report)], catch_exceptions=False)
    recorded = [json.loads(file.read_text("utf-8"))["request"]["body"] for file in folder.glob("*.json")]
    assert "[" * 2000 in recorded
    assert read_report(report)["counts"]["error"] == 0


def test_excluded_cases_do_not_run(fake: FakeProvider, cases: Path) -> None:
    status, output = run(fake, cases, "--exclude", "chat/text/bro*")
    assert (status, "2 cases" in output) == (0, True)


def test_diff_fails_only_for_regressions(fake: FakeProvider, cases: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    run(fake, cases, "--json", str(old))
    assert run(fake, cases, "--diff", str(old))[0] == 0
    fake.behaviour = "empty"
    status, output = run(fake, cases, "--diff", str(old))
    assert status == 1
    assert "regression: chat/text/plain" in output
    assert "regression: chat/text/broken" not in output


def test_unreachable_endpoint_gives_status_3(fake: FakeProvider, cases: Path) -> None:
    assert run(fake, cases, url="http://127.0.0.1:9/v1")[0] == 3


@pytest.mark.parametrize("level", ["MUST", "SHOULD"])
def test_dry_run_lists_the_cases_of_the_level(fake: FakeProvider, cases: Path, level: str) -> None:
    status, output = run(fake, cases, "--dry-run", "--level", level)
    assert status == 0
    assert ("chat/text/warned" in output) == (level == "SHOULD")
    assert "at most 8 tokens" in output
    assert not fake.requests


@pytest.mark.parametrize(
    ("option", "text", "problem"),
    [
        ("--expect", "- a\n", "case id: reason"),
        ("--diff", "{}", "is not a report of this suite"),
        ("--diff", "no", "no.json"),
    ],
)
def test_invalid_file_gives_status_2(
    fake: FakeProvider, cases: Path, tmp_path: Path, option: str, text: str, problem: str
) -> None:
    file = tmp_path / "no.json"
    file.write_text(text, "utf-8")
    status, output = run(fake, cases, option, str(file))
    assert status == 2
    assert problem in output.replace("\n", " ")
    assert not fake.requests


def test_invalid_case_gives_status_2(fake: FakeProvider, cases: Path) -> None:
    (cases / "wrong.yaml").write_text("protocol: chat\ncases: []\n", "utf-8")
    status, output = run(fake, cases)
    assert status == 2
    assert "wrong.yaml" in output


def test_report_combines_reports_into_a_matrix(fake: FakeProvider, cases: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    run(fake, cases, "--name", "good", "--json", str(one))
    fake.behaviour = "no-choices"
    run(fake, cases, "--name", "bad", "--json", str(two))
    result = runner.invoke(app, ["report", str(one), str(two)])
    assert "| `chat/text/plain` | ✅ | ❌ | it answers |" in result.output
    html = tmp_path / "matrix.html"
    assert runner.invoke(app, ["report", str(one), str(two), "--html", str(html)]).exit_code == 0
    assert html.read_text("utf-8").count('"name":"bad"') == 1


def test_brief_matrix_has_only_the_wire_logs_of_failures(fake: FakeProvider, cases: Path, tmp_path: Path) -> None:
    one, html = tmp_path / "one.json", tmp_path / "matrix.html"
    run(fake, cases, "--json", str(one))
    assert runner.invoke(app, ["report", str(one), "--html", str(html), "--brief"]).exit_code == 0
    shown = html.read_text("utf-8").partition('id="reports"')[2].partition(">")[2].partition("</script>")[0]
    page = json.loads(shown)
    results = {page["rules"][case["rule"]]["id"]: case for case in page["reports"][0]["cases"]}
    assert results["chat/text/plain"]["verdict"] == "pass"
    assert "steps" not in results["chat/text/plain"]
    assert results["chat/text/broken"]["steps"][0]["exchange"]["answer"]["status"] == 200


def test_commands_list_cases_and_checks() -> None:
    assert "sse.framing" in runner.invoke(app, ["checks"]).output
    listed = runner.invoke(app, ["list", "--dialect", "mindie"]).output
    assert "chat/text/plain" in listed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--only", "chat/txt/*"), "no case of openai matches --only chat/txt/*"),
        (("--protocol", "foo"), "--protocol foo: no case uses it; did you mean chat, completions"),
        (("--without", "visoin"), "--without visoin: no case uses it; did you mean vision?"),
    ],
)
def test_unknown_name_gives_status_2(options: tuple[str, ...], message: str) -> None:
    result = runner.invoke(app, ["run", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--dry-run", *options])
    assert result.exit_code == 2
    assert message in result.stderr
