"""Checks of `engine: litellm` providers."""

from __future__ import annotations

from importlib import metadata

import pytest

from dragoman.proxy.config.load import check_text
from dragoman.proxy.config.problems import ConfigErrors, Problem

GOOD = """\
providers: {any: {engine: litellm, vendor: anthropic, api_key: "${K}"}}
models: {m: {targets: [{provider: any, model: claude}]}}
"""


def problems(text: str) -> list[Problem]:
    try:
        check_text(text, "x.yaml", {"K": "key"})
    except ConfigErrors as errors:
        return errors.problems
    return []


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "1.106.2")


def test_a_missing_extra_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    [problem] = problems(GOOD)
    assert (problem.location, problem.code) == ("x.yaml:1:27", "missing-extra")
    assert problem.hint.startswith("run in the checkout: uv run --no-default-groups --extra litellm ")


def test_a_provider_that_no_model_uses_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.1")
    other = 'other: {dialect: openai, base_url: "https://h/v1"}'
    text = GOOD.replace("providers: {", f"providers: {{{other}, ").replace("provider: any", "provider: other")
    assert not problems(text)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("config.yaml", "config.yaml --output dragoman.yaml"),
        ("my config.yaml", "'my config.yaml' --output dragoman.yaml"),
        ("dragoman.yaml", "dragoman.yaml --output converted.yaml"),
        ("/etc/dragoman/dragoman.yaml", "/etc/dragoman/dragoman.yaml --output converted.yaml"),
    ],
)
def test_the_command_that_converts_a_file_never_overwrites_it(name: str, words: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        check_text("model_list: [{model_name: m, litellm_params: {model: openai/m}}]\n", name, {})
    assert [one.hint for one in caught.value.problems] == [f"convert it: dragoman import litellm {words}"]


@pytest.mark.parametrize(
    ("version", "good"),
    [
        ("1.82.7", False),
        ("1.82.8", False),
        ("1.106.1", False),
        ("1.106.2", True),
        ("1.107.0", False),
        ("1.108.0", True),
        ("1.109.9", True),
        ("1.110.0", False),
    ],
)
def test_only_tested_versions_are_accepted(monkeypatch: pytest.MonkeyPatch, version: str, good: bool) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: version)
    assert [problem.code for problem in problems(GOOD)] == ([] if good else ["untested-version"])


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("vendor: anthropic", "dialect: openai, vendor: anthropic", "wrong-engine"),
        ("vendor: anthropic", "vendor: anthropic, parameters: {mock_response: x}", "bad-name"),
        ("vendor: anthropic", "vendor: anthropic, parameters: {api_key: x}", "bad-name"),
        ("vendor: anthropic", "vendor: anthropic, protocols: [responses]", "unknown-protocol"),
        ("vendor: anthropic, ", "", "no-vendor"),
        ("engine: litellm, ", 'dialect: openai, base_url: "https://h/v1", ', "wrong-engine"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_keys_and_values_that_litellm_cannot_have_are_refused(old: str, new: str, code: str) -> None:
    assert code in [problem.code for problem in problems(GOOD.replace(old, new))]


@pytest.mark.usefixtures("installed")
def test_the_vendor_may_be_part_of_a_targets_model() -> None:
    assert not problems(GOOD.replace("vendor: anthropic, ", "").replace("model: claude", "model: anthropic/claude"))
