"""Without a file: providers from the environment."""

from __future__ import annotations

import pytest

from dragoman.proxy.config.environment import find_incomplete_variables, load_from_environment
from dragoman.proxy.config.load import ConfigErrors
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.names import match, upstream_name

OPENAI = {"OPENAI_API_KEY": "sk-1"}
DATABRICKS = {"DATABRICKS_HOST": "https://adb-1.azuredatabricks.net/", "DATABRICKS_TOKEN": "dapi1"}
AZURE = {"AZURE_INFERENCE_ENDPOINT": "https://x.services.ai.azure.com/models", "AZURE_INFERENCE_CREDENTIAL": "k"}

AZURE_OPENAI = {"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com/", "AZURE_OPENAI_API_KEY": "k2"}
ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-ant-1"}
MINDIE = {"MINDIE_API_KEY": "unused"}


def config(env: dict[str, str]) -> Config:
    found = load_from_environment(env)
    assert found is not None
    return found


def led(found: Config, name: str) -> tuple[str, str] | None:
    """The provider that a name leads to, and the name there."""
    key = match(found.models, name)
    if key is None:
        return None
    target = found.models[key].targets[0]
    return target.provider, upstream_name(key, target, name)


def test_nothing_set() -> None:
    assert load_from_environment({}) is None
    assert load_from_environment({"OPENAI_API_KEY": "", "DATABRICKS_HOST": "x"}) is None


@pytest.mark.parametrize(("env", "provider"), [
    (OPENAI, "openai"), (DATABRICKS, "databricks"), (AZURE, "azure"), (AZURE_OPENAI, "azure-openai"),
    (ANTHROPIC, "anthropic"), (MINDIE, "mindie"),
])  # fmt: skip
def test_one_provider_takes_every_name(env: dict[str, str], provider: str) -> None:
    found = config(env)
    assert list(found.providers) == list(found.models["*"].targets[0].provider.split()) == [provider]
    assert led(found, "org/some-model") == (provider, "org/some-model")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-5", ("openai", "gpt-5")),
        ("o3-mini", ("openai", "o3-mini")),
        ("chatgpt-4o-latest", ("openai", "chatgpt-4o-latest")),
        ("openai/gpt-5", ("openai", "gpt-5")),
        ("databricks-claude", ("databricks", "databricks-claude")),
        ("databricks/my-endpoint", ("databricks", "my-endpoint")),
        ("azure/Phi-4", ("azure", "Phi-4")),
        ("azure/openai/gpt", ("azure", "openai/gpt")),
        ("azure-openai/my-deployment", ("azure-openai", "my-deployment")),
        ("claude-opus-4-8", ("anthropic", "claude-opus-4-8")),
        ("anthropic/claude-opus-4-8", ("anthropic", "claude-opus-4-8")),
        ("Phi-4", None),
    ],
)
def test_several_providers(name: str, expected: tuple[str, str] | None) -> None:
    assert led(config(OPENAI | DATABRICKS | AZURE | AZURE_OPENAI | ANTHROPIC), name) == expected


def test_anthropic() -> None:
    found = config(ANTHROPIC).providers["anthropic"]
    assert (found.base_url, found.dialect, found.protocols) == ("https://api.anthropic.com", "anthropic", ["messages"])
    other = config(ANTHROPIC | {"ANTHROPIC_BASE_URL": "http://localhost:1"}).providers["anthropic"]
    assert other.base_url == "http://localhost:1"


def test_mindie() -> None:
    assert config(MINDIE).providers["mindie"].base_url == "https://127.0.0.1:1025"
    at_another_address = config({**MINDIE, "MINDIE_BASE_URL": "https://10.0.0.8:1025"}).providers["mindie"]
    assert (at_another_address.dialect, at_another_address.base_url) == ("mindie", "https://10.0.0.8:1025")


def test_addresses_and_keys() -> None:
    found = config(OPENAI | DATABRICKS | AZURE)
    assert found.providers["openai"].base_url == "https://api.openai.com/v1"
    assert (
        config(OPENAI | {"OPENAI_BASE_URL": "http://localhost:1/v1"})
        .providers["openai"]
        .base_url.startswith("http://l")
    )
    assert config(DATABRICKS | {"DATABRICKS_HOST": "adb-1.net"}).providers["databricks"].base_url == "https://adb-1.net"
    keys = [provider.api_key.get_secret_value() for provider in found.providers.values() if provider.api_key]
    assert keys == ["sk-1", "dapi1", "k"]


def test_a_resource_of_azure_openai() -> None:
    """By the variables of the openai package's AzureOpenAI."""
    provider = config(AZURE_OPENAI).providers["azure-openai"]
    assert (provider.dialect, provider.address, provider.api_version) == ("openai", "azure-openai", "2024-10-21")
    assert provider.base_url == AZURE_OPENAI["AZURE_OPENAI_ENDPOINT"]
    assert provider.protocols == ["chat", "completions", "embeddings"]
    dated = config(AZURE_OPENAI | {"OPENAI_API_VERSION": "2025-04-01-preview"})
    assert dated.providers["azure-openai"].api_version == "2025-04-01-preview"


@pytest.mark.parametrize(
    ("env", "code"),
    [
        ({"OPENAI_BASE_URL": "https://me:hunter2@host/v1"}, "bad-url"),
        ({"OPENAI_BASE_URL": "https://host/v1/chat/completions"}, "bad-url"),
        ({"OPENAI_BASE_URL": "http://10.0.0.1/v1"}, "plain-http"),
        ({"OPENAI_API_KEY": "hunter2 \n"}, "bad-secret"),
    ],
)
def test_bad_variables_are_named_and_not_shown(env: dict[str, str], code: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load_from_environment(OPENAI | env)
    assert [problem.code for problem in caught.value.problems] == [code]
    assert next(iter(env)) in str(caught.value)
    assert not any(value in str(caught.value) for value in env.values())


def test_incomplete_variables_are_found() -> None:
    assert find_incomplete_variables(OPENAI | AZURE) == []
    assert find_incomplete_variables({"DATABRICKS_TOKEN": "x"}) == [
        "DATABRICKS_TOKEN is set, but DATABRICKS_HOST is not"
    ]
