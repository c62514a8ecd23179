"""Where an error in a completions request points, and in what words."""

from __future__ import annotations

import pytest

from dragoman.adapters.validation import load_validator
from dragoman.schemas import Schema, load, profiles

from .conftest import FindErrors

REQUESTS = ["openai/completions.request", "hub/completions.request", "databricks/completions.request"]
EVERYWHERE: list[tuple[Schema, list[str | int], str]] = [
    ({"prompt": ["a", "b", None]}, ["prompt", 2], "type"),
    ({"prompt": {}}, ["prompt"], "type"),
    ({"stop": ["a", 1]}, ["stop", 1], "type"),
    ({"temperature": 3}, ["temperature"], "maximum"),
    ({"echo": "yes"}, ["echo"], "type"),
    ({"suffix": 1}, ["suffix"], "type"),
]


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize(("change", "path", "keyword"), EVERYWHERE)
def test_a_mistake_is_an_error_at_its_own_place(
    name: str, change: Schema, path: list[str | int], keyword: str, errors: FindErrors
) -> None:
    found = errors(name, {"model": "m", "prompt": "x", **change}, profiles(name)[-1])
    assert {tuple(error.instance_path) for error in found} == {tuple(path)}
    assert found[0].kind.name == keyword


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        (
            "openai",
            {"prompt": ["a", 1]},
            "prompt[1] is not valid: a list that contains a string must contain only strings",
        ),
        (
            "openai",
            {"prompt": [1, [2]]},
            "prompt[1] is not valid: a list that contains a token must contain only tokens",
        ),
        ("openai", {"prompt": []}, "prompt must not be empty"),
        ("openai", {}, "prompt is required"),
        ("openai", {"prompt": "x", "stream_options": {}}, "stream_options requires stream to be true"),
        ("databricks", {"prompt": [[1]]}, "prompt[0] must be of type string, got array"),
    ],
)
def test_a_broken_rule_has_a_message(name: str, body: Schema, said: str) -> None:
    violation = next(load_validator(f"{name}/completions.request").violations({"model": "m", **body}))
    assert said in violation.message


def test_documented_requests_of_databricks_have_the_documents_fields_only() -> None:
    fields = {
        "model", "prompt", "max_tokens", "stream", "temperature", "top_p", "top_k", "error_behavior", "n", "stop",
        "suffix", "echo", "use_raw_prompt",
    }  # fmt: skip
    schema = load("databricks/completions.request")
    assert schema["properties"].keys() == fields
    defaults = {name: rule["default"] for name, rule in schema["properties"].items() if "default" in rule}
    assert defaults == {"stream": True, "temperature": 1.0, "top_p": 1.0, "error_behavior": "error", "n": 1}
    assert load("databricks/completions.request", "actual")["properties"]["stream"]["default"] is False
