"""The addresses of model lists: those that two dialects have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import JsonObject
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.listing import Information
from dragoman.proxy.server.model_listing import ModelRoutes

OPENAI = dialects["openai"]


def answer(*_: object) -> JsonObject:
    return {}


SHARED = {
    "models": Information("all", answer, ("/v1/models",)),
    "model": Information("named", answer, ("/v1/models/{name}",)),
    "own": Information("all", answer, ("/marked/v1/models",)),
}
MARKED = replace(OPENAI, name="marked", information=SHARED, headers={"x-marker": "1"})


@pytest.mark.parametrize("order", [(OPENAI, MARKED), (MARKED, OPENAI)])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/gpt"])
def test_a_header_tells_two_dialects_with_one_address_apart(order: tuple[Dialect, ...], path: str) -> None:
    routes = ModelRoutes({dialect.name: dialect for dialect in order})
    plain, marked = routes.match(path, {}), routes.match(path, {"x-marker": "1"})
    assert plain is not None and marked is not None
    assert (plain.dialect.name, marked.dialect.name) == ("openai", "marked")


def test_an_address_that_one_dialect_has_needs_no_header() -> None:
    found = ModelRoutes({"openai": OPENAI, "marked": MARKED}).match("/marked/v1/models", {})
    assert found is not None and found.dialect.name == "marked"
