"""Bad files with their explanations: `x.txt` is what `dragoman check x.yaml` writes to stderr in that folder. The
environment has SET=value and an empty EMPTY."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.proxy.cli.main import app

FIXTURES = Path(__file__).parent / "fixtures"
BAD = sorted(path.name for path in (FIXTURES / "bad").glob("*.yaml"))
WARNED = sorted(path.name for path in (FIXTURES / "warned").glob("*.yaml"))
UNSET = ("HOST", "MINDIE_URL", "DRAGOMAN_INSECURE", "DRAGOMAN_FORMAT", "DRAGOMAN_ENV_FILE")
ENV = {"SET": "value", "EMPTY": "", **dict.fromkeys(UNSET)}
CANARIES = ("hunter", "aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd", "0123456789abc", "plain secret")
SECRETS = (
    "secrets.yaml",
    "secret-in-broken-yaml.yaml",
    "duplicate-key.yaml",
    "unknown-key.yaml",
    "scalar-for-mapping.yaml",
    "syntax.yaml",
    "misspelled.yaml",
    "litellm.yaml",
)


def run_check(folder: str, name: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> tuple[int, str, str]:
    monkeypatch.chdir(FIXTURES / folder)
    result = CliRunner().invoke(app, ["check", name, *options], env=ENV)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("name", BAD)
def test_every_problem_of_a_bad_file_is_explained(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    status, stdout, stderr = run_check("bad", name, monkeypatch)
    assert stderr == (FIXTURES / "bad" / name).with_suffix(".txt").read_text("utf-8")
    assert (status, stdout) == (2, "")


@pytest.mark.parametrize("name", WARNED)
def test_warnings_do_not_fail_the_check(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    status, stdout, stderr = run_check("warned", name, monkeypatch)
    assert stderr == (FIXTURES / "warned" / name).with_suffix(".txt").read_text("utf-8")
    assert status == 0
    assert "no errors" in stdout


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("form", ["text", "json", "github"])
def test_secrets_are_never_shown(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(canary in (FIXTURES / "bad" / name).read_text("utf-8") for canary in CANARIES)
    status, stdout, stderr = run_check("bad", name, monkeypatch, "--format", form)
    assert status == 2
    assert not [canary for canary in CANARIES if canary in (stdout + stderr).lower()]


def test_values_of_variables_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("wrong-type.yaml", "names.yaml", "values.yaml", "variables.yaml"):
        monkeypatch.setenv("SET", "canary-canary")
        monkeypatch.chdir(FIXTURES / "bad")
        result = CliRunner().invoke(app, ["check", name])
        assert result.exit_code == 2
        assert "canary" not in result.output


@pytest.mark.parametrize("name", ["wrong-type.yaml", "circles.yaml", "empty.yaml"])
def test_json_has_the_same_problems_as_the_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    status, stdout, stderr = run_check("bad", name, monkeypatch, "--format", "json")
    problems = json.loads(stdout)["problems"]
    text = (FIXTURES / "bad" / name).with_suffix(".txt").read_text("utf-8")
    assert (status, stderr) == (2, "")
    assert len(problems) == text.count("error[")
    for problem in problems:
        place = f"{problem['file']}:{problem['line']}:{problem['column']}" if problem["line"] else problem["file"]
        assert f"{place}: {problem['severity']}[{problem['code']}]: {problem['message']}\n" in text
        assert problem["expected"] in text
        assert problem["hint"] in text


def test_json_is_valid_without_problems(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    providers = '{p: {dialect: openai, base_url: "http://h/v1"}}'
    file.write_text(f"providers: {providers}\nmodels: {{m: {{targets: [{{provider: p}}]}}}}\n")
    result = CliRunner().invoke(app, ["check", str(file), "--format", "json"])
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"problems": []})


def test_github_annotations_have_file_line_and_message(monkeypatch: pytest.MonkeyPatch) -> None:
    status, stdout, _ = run_check("bad", "quantities.yaml", monkeypatch, "--format", "github")
    first, second, *_ = stdout.splitlines()
    expected = "expected: a size such as 32MiB or 64kB"
    assert first == f"::error file=quantities.yaml,line=2,col=15,title=bad-size::this is not a size%0A{expected}"
    assert second.endswith("%0Ahint: write 30s")
    assert status == 2


def test_github_annotations_escape_special_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a,b:c.yaml").write_text("50%: 1\n")
    result = CliRunner().invoke(app, ["check", "a,b:c.yaml", "--format", "github"])
    assert "file=a%2Cb%3Ac.yaml," in result.stdout
    assert 'unknown key "50%25"' in result.stdout
