"""The registry: every dialect is complete, and one that is not says what it lacks."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.dialect_check import SIDES, IncompleteDialect, find_missing_parts, require_complete
from dragoman.adapters.listing import Information
from dragoman.adapters.providers import AddressForm, BaseAddress, EnvironmentProvider, Vendor
from dragoman.adapters.registry import NAMES
from dragoman.contract.dialects import DIALECTS as CONTRACT_DIALECTS
from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonObject
from tests.dialects import ALL_DIALECTS

ROOT = Path(__file__).resolve().parents[2]
OPENAI = dialects["openai"]
BASE = BaseAddress("/x", re.compile("/x$"))


def test_every_dialect_with_a_folder_is_registered() -> None:
    assert tuple(dialects) == NAMES == ALL_DIALECTS
    assert {file.parent.name for file in (ROOT / "adapters").glob("*/fake.json")} == set(NAMES)
    assert set(CONTRACT_DIALECTS) == set(NAMES)


def test_the_linter_keeps_every_dialect_apart() -> None:
    """pyproject.toml is no program, so that its list is compared."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    [listed] = [one["modules"] for one in contracts if one["name"] == "dialects never import one another"]
    wanted = [f"dragoman.adapters.{name}" for name in NAMES]
    assert listed == wanted, f"in pyproject.toml, the contract of dialects needs: modules = {wanted}".replace("'", '"')


@pytest.mark.parametrize("name", ALL_DIALECTS)
def test_a_fake_answers_what_its_dialect_is_called_with(name: str) -> None:
    data, dialect = load_dialect(name), dialects[name]
    assert dialect.called.keys() <= data.paths.keys() <= {*SIDES, "models"}
    assert set(data.profiles) == set(dialect.profiles)
    assert data.schema_profile in dialect.profiles
    assert data.query.keys() == dialect.query.keys()
    assert data.headers.keys() == dialect.headers.keys()


def everything_exists(_path: str) -> bool:
    return True


def lacking(dialect: Dialect, exists: Callable[[str], bool] = everything_exists) -> list[str]:
    return list(find_missing_parts("openai", dialect, exists))


def test_a_complete_dialect_lacks_nothing() -> None:
    assert lacking(OPENAI) == []
    assert (
        lacking(replace(OPENAI, paths={}, served={}, information={}, stored_protocols=frozenset(), address_forms={}))
        == []
    )


CHAT = {"chat": OPENAI.called["chat"]}
INCOMPLETE: dict[str, tuple[JsonObject, str]] = {
    "another name": ({"name": "groq"}, "its name is groq, but its folder is adapters/openai"),
    "no protocol": (
        {"served": {}, "called": {}, "default_protocols": ()},
        "it has no verbs of any protocol (served, called)",
    ),
    "an unknown protocol": ({"called": {**CHAT, "poems": OPENAI.called["chat"]}}, "there is no protocol poems"),
    "no path": ({"paths": {**OPENAI.paths, "chat": ()}}, "chat is served, but has no path"),
    "a path of nothing": (
        {"paths": {**OPENAI.paths, "poems": ("/v1/poems",)}},
        "the path /v1/poems is for poems, which is not served",
    ),
    "a path of a form": (
        {"address_forms": {"f": AddressForm("F", BASE, "bearer", paths={"poems": ("/f/poems",)})}},
        "the path /f/poems is for poems, which is not served",
    ),
    "information nowhere": (
        {"information": {"models": Information("all", lambda models, call: {}, ())}},
        "the information models has no path",
    ),
    "no base address": ({"base_address": None}, "it is called, but has no base_address"),
    "no auth": ({"auth": {}, "address_forms": {}}, "it is called, but has no way to present a key (auth)"),
    "a served profile": ({"served_profile": "native"}, "the served profile native is not one of its profiles"),
    "a called profile": ({"called_profile": "native"}, "the called profile native is not one of its profiles"),
    "auth of a form": (
        {"address_forms": {"f": AddressForm("F", BASE, "x")}},
        "the address form f has the unknown auth x",
    ),
    "a default": ({"default_protocols": ("poems",)}, "default_protocols: poems is not called"),
    "a variable": (
        {"environment": (EnvironmentProvider("e", ("E",), "https://e", ("poems",)),)},
        "environment e: poems is not called",
    ),
    "a vendor": ({"vendors": {"v": Vendor(protocols=("poems",))}}, "vendor v: poems is not called"),
    "kept": ({"stored_protocols": frozenset({"poems"})}, "stored_protocols: poems is not served"),
}


@pytest.mark.parametrize("case", INCOMPLETE)
def test_what_is_missing_is_named(case: str) -> None:
    changes, said = INCOMPLETE[case]
    assert said in lacking(replace(OPENAI, **changes))


@pytest.mark.parametrize("file", ["fake.json", "samples/chat.json", "samples/embeddings.json"])
def test_missing_files_are_named(file: str) -> None:
    assert lacking(OPENAI, lambda path: path != file) == [f"adapters/openai/{file} is missing"]


def test_one_error_names_all_that_is_missing() -> None:
    """Of a folder with nothing in it."""
    with pytest.raises(IncompleteDialect) as caught:
        require_complete("groq", replace(OPENAI, name="groq", called=CHAT, served={}, paths={}, information={}))
    for missing in ("schemas/groq/chat.event.json", "adapters/groq/samples/chat.json", "adapters/groq/fake.json"):
        assert f"{missing} is missing" in str(caught.value)
    assert str(caught.value).startswith("the dialect groq is incomplete: ")
