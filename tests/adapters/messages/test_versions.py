"""A request is held to the version of the API that its header names."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.headers import read_betas, write_headers
from dragoman.adapters.messages.versions import VERSIONS, check_version, list_foreign
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

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


DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
CITED = {"type": "text", "text": "x", "citations": [{"type": "char_location", "cited_text": "x"}]}


@pytest.mark.parametrize(
    ("role", "block", "path", "text"),
    [
        ("assistant", DOCUMENT, ("messages", 0, "content", 1), "document blocks are not accepted in messages of the"),
        (
            "user",
            CITED,
            ("messages", 0, "content", 1, "citations"),
            "citations are not accepted in messages of the user",
        ),
        (
            "user",
            {"type": "search_result", "source": "s", "title": "t", "content": [CITED]},
            ("messages", 0, "content", 1, "content", 0, "citations"),
            "citations are not accepted in messages of the user",
        ),
    ],
)
def test_the_later_version_lacks_blocks_of_some_roles(
    role: str, block: JsonObject, path: tuple[str | int, ...], text: str
) -> None:
    body = {"model": "m", "messages": [{"role": role, "content": [{"type": "text", "text": "a"}, block]}]}
    check_version(body, "2023-06-01", VALIDATOR)
    with pytest.raises(Fault) as raised:
        check_version(body, "2026-10-21", VALIDATOR)
    assert raised.value.path == path and raised.value.message.startswith(text)


def test_the_other_roles_may_have_them_and_what_is_empty_is_absent() -> None:
    messages = [
        {"role": "user", "content": [DOCUMENT, {**CITED, "citations": []}, {**CITED, "citations": None}]},
        {"role": "user", "content": [{**DOCUMENT, "citations": {"enabled": True}}]},
        {"role": "assistant", "content": [{"type": "web_fetch_tool_result", "content": {"content": DOCUMENT}}]},
        {"role": "assistant", "content": [CITED]},
        {"role": "assistant", "content": "x"},
    ]
    check_version({"model": "m", "messages": messages}, "2026-10-21", VALIDATOR)


@pytest.mark.parametrize("betas", ["\udcff", "a,\u00e4", "a\x00", "-a"])
def test_what_is_no_name_of_a_beta_never_reaches_a_provider(betas: str) -> None:
    with pytest.raises(Fault, match="not the name of a beta"):
        read_betas(Call("POST", "/v1/messages", {}, headers={"anthropic-beta": betas}))


def test_betas_are_a_list_with_commas() -> None:
    found = read_betas(Call("POST", "/v1/messages", {}, headers={"anthropic-beta": " a-1 ,, b_2.x "}))
    assert found == ["a-1", "b_2.x"]
    lines = CIMultiDict([("Anthropic-Beta", "a-1"), ("x", "y"), ("anthropic-beta", "b_2.x, c")])
    assert read_betas(Call("POST", "/v1/messages", {}, headers=lines)) == ["a-1", "b_2.x", "c"]
    assert read_betas(Call("POST", "/v1/messages", {})) == []


IDS = {"Anthropic-User-Profile-Id": "uprof_1", "anthropic-workspace-id": "wrkspc_1"}


def write_headers_of(headers: dict[str, str], takes_betas: bool) -> tuple[dict[str, str], list[JsonValue]]:
    call = Call("POST", "/v1/messages", {}, headers=CIMultiDict(headers))
    ctx = Context("actual", call, Receipt(), Target("m"), {})
    made = write_headers({}, ctx, VALIDATOR, takes_betas=takes_betas)
    return made, [change.before for change in ctx.receipt.losses]


def test_the_user_profile_goes_to_anthropic_and_the_workspace_is_a_loss() -> None:
    made, lost = write_headers_of(IDS, takes_betas=True)
    assert made["anthropic-user-profile-id"] == "uprof_1"
    assert "anthropic-workspace-id" not in made
    assert lost == [("anthropic-workspace-id",)]


def test_a_provider_without_betas_gets_neither_which_is_a_loss() -> None:
    made, lost = write_headers_of(IDS, takes_betas=False)
    assert made.keys() == {"anthropic-version"}
    assert lost == [("anthropic-user-profile-id",), ("anthropic-workspace-id",)]


@pytest.mark.parametrize("profile", ["a\x00", "-a", "a, b", "\u00e4"])
def test_what_is_no_id_of_a_profile_never_reaches_a_provider(profile: str) -> None:
    with pytest.raises(Fault):
        write_headers_of({"anthropic-user-profile-id": profile}, takes_betas=True)
