"""A request is held to the version of the API that its header names."""

from __future__ import annotations

import pytest

from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.versions import VERSIONS, check_version, list_foreign
from dragoman.adapters.validation import load_validator

VALIDATOR = load_validator("anthropic/messages.request", "actual")


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
def test_the_later_version_lacks_the_sampling_parameters(name: str) -> None:
    body = {"model": "m", name: 1}
    check_version(body, "2023-06-01", VALIDATOR)
    with pytest.raises(Fault) as raised:
        check_version(body, "2026-10-21", VALIDATOR)
    assert (raised.value.kind, raised.value.path) == ("extra_parameter", (name,))
    assert raised.value.message == f"{name} is not a parameter of the API version 2026-10-21"


def test_all_parameters_of_other_versions_are_named_at_once() -> None:
    with pytest.raises(Fault) as raised:
        check_version({"temperature": 0, "top_k": 3, "max_tokens": 1}, "2026-10-21", VALIDATOR)
    assert [one.path for one in (raised.value, *raised.value.others)] == [("temperature",), ("top_k",)]


def test_null_and_parameters_that_nobody_knows_belong_to_every_version() -> None:
    for version in VERSIONS:
        assert list_foreign({"model": "m", "temperature": None, "news": 1}, version, VALIDATOR) == []
