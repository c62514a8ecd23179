"""`dragoman import litellm`: `litellm.yaml` is converted to `litellm.out`, with the warnings in `litellm.txt`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.proxy.cli.main import app

HERE = Path(__file__).parent
ENV = {
    "AZ_BASE": "https://x.services.ai.azure.com/models",
    **dict.fromkeys(("AZ_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DATABRICKS_TOKEN"), "secret"),
    **dict.fromkeys(("AWS_SECRET", "LITELLM_MASTER_KEY"), "secret"),
}


@pytest.fixture(autouse=True)
def working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def test_a_configuration_is_converted_with_warnings() -> None:
    result = CliRunner().invoke(app, ["import", "litellm", "litellm.yaml"])
    assert result.exit_code == 0
    assert result.stdout == (HERE / "litellm.out").read_text("utf-8")
    assert result.stderr == (HERE / "litellm.txt").read_text("utf-8")
    assert "literal-0123456789" not in result.output


def test_the_result_passes_the_check(tmp_path: Path) -> None:
    """If litellm is not installed, that is the only problem."""
    written = tmp_path / "dragoman.yaml"
    assert CliRunner().invoke(app, ["import", "litellm", "litellm.yaml", "--output", str(written)]).exit_code == 0
    checked = CliRunner().invoke(app, ["check", str(written)], env=ENV)
    if importlib.util.find_spec("litellm") is None:
        codes = {line.split("[")[1].split("]")[0] for line in checked.stderr.splitlines() if ": error[" in line}
        assert (checked.exit_code, codes) == (2, {"missing-extra"})
        assert f"{written}:" in checked.stderr and "pip install '.[litellm]'" in checked.stderr
    else:
        assert (checked.exit_code, checked.stderr) == (0, "")


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    written = tmp_path / "dragoman.yaml"
    written.write_text("mine")
    result = CliRunner().invoke(app, ["import", "litellm", "litellm.yaml", "--output", str(written)])
    assert (result.exit_code, written.read_text()) == (2, "mine")


@pytest.mark.parametrize("text", ["", "a: [", "providers: {}", "model_list: [{model_name: x}]"])
def test_a_file_that_is_not_of_litellm_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    result = CliRunner().invoke(app, ["import", "litellm", str(file)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert str(file) in result.stderr


def test_a_weight_that_other_deployments_lack_is_reported(tmp_path: Path) -> None:
    entry = "  - {{model_name: m, litellm_params: {{model: openai/{}, api_key: os.environ/OPENAI_API_KEY{}}}}}\n"
    file = tmp_path / "config.yaml"
    file.write_text("model_list:\n" + entry.format("a", ", weight: 3") + entry.format("b", ""))
    result = CliRunner().invoke(app, ["import", "litellm", str(file), "--output", "-"])
    assert result.exit_code == 0
    assert "weight" not in result.stdout
    assert f"{file}:2:" in result.stderr and "used only if every deployment of the name has one" in result.stderr
