"""The base addresses that are tried, and models in lists."""

from __future__ import annotations

import pytest

from dragoman.contract.learning.dialect_choice import list_bases, list_models


@pytest.mark.parametrize(
    ("dialect", "url", "bases"),
    [
        ("openai", "http://h:1", ["http://h:1/v1"]),
        ("openai", "h:1/v1/", ["http://h:1/v1"]),
        ("openai", "https://h/api/v1/chat/completions", ["https://h/api/v1"]),
        ("openai", "https://h/v1beta/openai", ["https://h/v1beta/openai/v1", "https://h/v1beta/openai"]),
        ("mindie", "http://h:1/v1", ["http://h:1"]),
        ("anthropic", "https://h/v1/messages", ["https://h"]),
        ("databricks", "https://h/serving-endpoints/m/invocations", ["https://h"]),
        ("databricks", "https://h/serving-endpoints", ["https://h"]),
        ("azure", "https://h/models", ["https://h/models"]),
    ],
)
def test_what_clients_append_is_cut_off(dialect: str, url: str, bases: list[str]) -> None:
    assert list_bases(url, dialect)[: len(bases)] == bases


@pytest.mark.parametrize("body", [None, [], {"data": None}, {"data": [1, {"id": 2}, {"id": ""}, {}]}])
def test_a_damaged_list_of_models_is_empty(body: object) -> None:
    assert list_models("openai", body) == []
