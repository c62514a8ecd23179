"""`dragoman import litellm`: `litellm.yaml` is converted to `litellm.out`, with the warnings in `litellm.txt`."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.proxy.cli.main import app
from dragoman.proxy.config.load import check

HERE = Path(__file__).parent
ENV = {
    "AZ_BASE": "https://x.services.ai.azure.com/models",
    **dict.fromkeys(
        ("AZ_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY_2", "OPENAI_API_KEY", "DATABRICKS_TOKEN"), "secret"
    ),
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


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (
            'model: azure/gpt-5, api_base: "https://x.openai.azure.com/", api_version: 2025-01-01-preview',
            {
                "dialect": "openai",
                "base_url": "https://x.openai.azure.com",
                "address": "azure-openai",
                "api_version": "2025-01-01-preview",
                "api_key": "secret",
            },
        ),
        (
            "model: azure/gpt-5, api_base:"
            ' "https://x.openai.azure.com/openai/deployments/gpt-5/chat/completions?api-version=1"',
            {"base_url": "https://x.openai.azure.com", "address": "azure-openai", "api_version": "2024-10-21"},
        ),
        ("model: azure/gpt-5", {"base_url": "https://y.openai.azure.com", "address": "azure-openai"}),
        ("model: ollama/llama3", {"dialect": "openai", "base_url": "http://localhost:11434/v1", "api_key": None}),
        ('model: ollama_chat/llama3, api_base: "http://h:11434"', {"base_url": "http://h:11434/v1"}),
        ('model: ollama/llama3, api_base: "http://h:11434/v1/"', {"base_url": "http://h:11434/v1"}),
        ('model: hosted_vllm/q, api_base: "http://h:8000/v1"', {"dialect": "openai", "base_url": "http://h:8000/v1"}),
        ("model: anthropic/claude-x", {"dialect": "anthropic", "base_url": "https://api.anthropic.com"}),
        (
            'model: azure_ai/claude-opus-4-5, api_base: "https://x.services.ai.azure.com/anthropic"',
            {
                "dialect": "azure",
                "address": "anthropic",
                "base_url": "https://x.services.ai.azure.com",
                "protocols": ["messages"],
                "api_key": "secret",
            },
        ),
        ("model: openai/responses/gpt-5", {"base_url": "https://api.openai.com/v1", "protocols": ["responses"]}),
        ("model: databricks/dbrx", {"dialect": "databricks", "base_url": "https://adb-1.azuredatabricks.net"}),
        ("model: openai/gpt-5", {"dialect": "openai", "base_url": "https://api.openai.com/v1"}),
        ("model: groq/llama", {"dialect": "openai", "base_url": "https://api.groq.com/openai/v1", "api_key": "secret"}),
        (
            "model: mistral/large",
            {"dialect": "openai", "base_url": "https://api.mistral.ai/v1", "protocols": ["chat", "embeddings"]},
        ),
        ("model: together_ai/q", {"base_url": "https://api.together.ai/v1", "api_key": "secret"}),
    ],
    ids=lambda value: value[:48] if isinstance(value, str) else "",
)
def test_a_vendor_with_a_dialect_needs_no_litellm(
    parameters: str, expected: Mapping[str, object], tmp_path: Path
) -> None:
    file, written = tmp_path / "config.yaml", tmp_path / "dragoman.yaml"
    file.write_text(f"model_list:\n  - {{model_name: m, litellm_params: {{{parameters}}}}}\n")
    result = CliRunner().invoke(app, ["import", "litellm", str(file), "--output", str(written)])
    assert (result.exit_code, "warning[" in result.stderr) == (0, False), result.stderr
    names = ("AZURE", "AZURE_AI", "OPENAI", "ANTHROPIC", "DATABRICKS", "GROQ", "MISTRAL", "TOGETHERAI")
    env = dict.fromkeys((f"{name}_API_KEY" for name in names), "secret")
    env |= {"AZURE_API_BASE": "https://y.openai.azure.com", "DATABRICKS_API_BASE": "https://adb-1.azuredatabricks.net"}
    checked = check(written, env)
    [provider] = checked.config.providers.values()
    found = vars(provider)
    assert provider.engine is None and not checked.warnings
    assert "responses/" not in written.read_text()
    key = provider.api_key and provider.api_key.get_secret_value()
    assert {name: key if name == "api_key" else found[name] for name in expected} == expected


def test_the_warning_about_a_name_says_which_names_there_are(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("model_list:\n  - {model_name: my model, litellm_params: {model: openai/gpt-5}}\n")
    result = CliRunner().invoke(app, ["import", "litellm", str(file)])
    words = "dragoman does not allow this model_name: a name has letters, digits and . _ : / @ -, at most 256"
    assert words in result.stderr


@pytest.mark.parametrize("key", ["", ", api_key: os.environ/OPENAI_API_KEY"])
def test_a_secret_of_the_file_gets_no_variable_that_the_file_reads(key: str, tmp_path: Path) -> None:
    """Otherwise the key of one vendor is sent to the address of another."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "model_list:\n"
        '  - {model_name: a, litellm_params: {model: openai/a, api_base: "http://h/v1", api_key: literal-1}}\n'
        f"  - {{model_name: b, litellm_params: {{model: openai/b{key}}}}}\n"
        "  - {model_name: c, litellm_params: {model: text-completion-openai/c}}\n"
    )
    result = CliRunner().invoke(app, ["import", "litellm", str(file)])
    assert "put it into the variable OPENAI_API_KEY_2" in result.stderr
    assert "base_url: http://h/v1\n    api_key: ${OPENAI_API_KEY_2}\n" in result.stdout
    assert "base_url: https://api.openai.com/v1\n    api_key: ${OPENAI_API_KEY}\n" in result.stdout
    assert "api_key: ${TEXT_COMPLETION_OPENAI_API_KEY}\n" in result.stdout


@pytest.mark.parametrize(
    ("model", "name", "variable"),
    [
        ("bedrock/claude", "aws_session_token", "AWS_SESSION_TOKEN"),
        ("bedrock/claude", "aws_web_identity_token", "AWS_WEB_IDENTITY_TOKEN"),
        ("azure/gpt-5", "azure_ad_token", ""),
    ],
)
def test_a_token_in_the_file_is_neither_copied_nor_shown(model: str, name: str, variable: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        f"model_list: [{{model_name: a, litellm_params: {{model: {model}, api_base: http://h, {name}: tok-123}}}}]\n"
    )
    result = CliRunner().invoke(app, ["import", "litellm", str(file)])
    assert (result.exit_code, "tok-123" in result.output) == (0, False), result.output
    assert f"{name}: ${{{variable}}}" in result.stdout or not variable


LEFT_OUT = """\
model_list:
  - model_name: a
    litellm_params: {model: openai/a, timeout: "30", drop_params: "true", input_cost_per_token: 0.1, max_retries: 2}
    model_info: {id: one, access_groups: [beta]}
    tpm: 10
litellm_settings: {num_retries: "3", request_timeout: os.environ/RT, fallbacks: {a: [b]}}
router_settings: {timeout: 1m, fallbacks: [a, {a: b}], model_group_alias: [a]}
include: [more.yaml]
"""


def test_every_setting_that_is_left_out_is_reported_with_what_to_write_instead(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(LEFT_OUT)
    result = CliRunner().invoke(app, ["import", "litellm", str(file)])
    lines = [line.partition("]: ")[2] for line in result.stderr.splitlines() if "warning[" in line]
    assert (result.exit_code, lines) == (
        0,
        [
            "timeout: only a number above 0 can be converted",
            "drop_params: only true or false can be converted",
            "input_cost_per_token: write price at the target, for a million tokens",
            "max_retries: retries.attempts is for the whole file",
            "access_groups: dragoman has no such setting",
            "tpm: dragoman has no such setting",
            "num_retries: only a number above 0 can be converted",
            "request_timeout: only a number above 0 can be converted",
            "this is not converted, because it is not a list",
            "timeout: only a number above 0 can be converted",
            "this is not converted, because it is not a mapping",
            "this is not converted, because it is not a list",
            "this is not converted, because it is not a mapping",
            "include: import each of these files too, and put their models into one file",
        ],
    )


def test_a_file_that_only_includes_others_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("include: [model_config.yaml]\n")
    result = CliRunner().invoke(app, ["import", "litellm", str(file)])
    assert result.exit_code == 2
    assert "hint: include: import each of these files too" in result.stderr


def test_fallbacks_need_no_retries(tmp_path: Path) -> None:
    """LiteLLM's number of retries does not count them, and dragoman's number of tries does."""
    entry = "  - {{model_name: {0}, litellm_params: {{model: openai/{0}, api_key: os.environ/OPENAI_API_KEY}}}}\n"
    file = tmp_path / "config.yaml"
    settings = "router_settings: {num_retries: 0, fallbacks: [{a: [b, c]}]}\n"
    file.write_text("model_list:\n" + "".join(map(entry.format, "abc")) + settings)
    result = CliRunner().invoke(app, ["import", "litellm", str(file)])
    assert "retries:\n  attempts: 3\n" in result.stdout


def test_a_router_of_litellm_becomes_no_provider(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "model_list:\n  - {model_name: smart, litellm_params: {model: auto_router/adaptive_router}}\n"
        "  - {model_name: fast, litellm_params: {model: openai/gpt-5}}\n"
    )
    result = CliRunner().invoke(app, ["import", "litellm", str(file)])
    assert (result.exit_code, "smart" in result.stdout) == (0, False)
    assert "does not choose among models by what a request says" in result.stderr
