"""The entry that a person keeps."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from dragoman.contract.learning.entry import EntryNames, derive_settings, render_entry
from dragoman.contract.learning.findings import Evidence, Findings


def make_findings(model: str = "m") -> Findings:
    findings = Findings("http://x/v1", "openai", model)
    findings.learn("protocols.chat", True, Evidence("POST /chat/completions", "200 {}"))
    return findings


@pytest.mark.parametrize(
    ("older", "newer", "name"),
    [
        ("accepted", "refused", "max_tokens"),
        ("accepted", "ignored", "max_tokens"),
        ("refused", "accepted", "max_completion_tokens"),
        ("refused", "ignored", "max_completion_tokens"),
        ("accepted", "accepted", None),
        ("ignored", "ignored", None),
        ("refused", "crashes", None),
        ("accepted", None, None),
    ],
)
def test_the_limit_has_the_name_that_works(older: str, newer: str | None, name: str | None) -> None:
    findings = make_findings()
    findings.learn("fields.chat.max_tokens", older)
    if newer is not None:
        findings.learn("fields.chat.max_completion_tokens", newer)
    assert derive_settings(findings).get("max_tokens_name") == name


def test_what_came_back_cannot_end_a_comment() -> None:
    findings = make_findings()
    findings.learn("fields.chat.n", "ignored", Evidence("x", "200 a\nproviders: {}\r\u2028b\x1b[31m"))
    entry = render_entry(findings, EntryNames("p"), "dragoman learn")
    assert "\nproviders: {}" not in entry
    assert "\x1b" not in entry
    assert "\u2028" not in entry
    assert 'lacks: ["n"]' in entry


def test_what_is_not_known_is_grouped_by_the_reason() -> None:
    findings = make_findings()
    findings.give_up("fields.chat.a", "because")
    findings.give_up("fields.chat.b", "because")
    assert "# - chat.a, chat.b: because" in render_entry(findings, EntryNames("p"), "dragoman learn")


def test_other_models_are_listed_without_what_is_learned() -> None:
    findings = make_findings()
    findings.learn("models", ["m", "other/one:2", "bad name\n", "${X}"], Evidence("GET /models", "200"))
    entry = render_entry(findings, EntryNames("p"), "dragoman learn")
    assert '  "other/one:2": {targets: [{provider: p}]}' in entry
    assert "bad name" not in entry
    assert "${X}" not in entry


@pytest.mark.parametrize(
    ("model", "public"),
    [("/models/qwen 3.gguf", "models/qwen-3.gguf"), ("../a.gguf", "a.gguf"), ("é", "p"), ("org/m:1", "org/m:1")],
)
def test_a_model_whose_name_is_a_path_gets_a_public_name(model: str, public: str) -> None:
    entry = render_entry(make_findings(model), EntryNames("p"), "dragoman learn")
    models = YAML(typ="safe").load(entry)["models"]
    assert list(models) == [public]
    assert models[public]["targets"][0]["model"] == model
