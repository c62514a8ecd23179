"""Keys that only one dialect's servers know stay within it: its clients' requests work over every provider."""

from __future__ import annotations

import pytest

from dragoman.contract.json_types import JsonObject
from tests.dialects import called

from .client import MakeClient
from .house import House

ADVISING: dict[str, JsonObject] = {
    "databricks": {"client_request_id": "c", "usage_context": {"team": "a"}},
    "azure": {"user_security_context": {"application_name": "a"}},
}
PROVIDERS = called("chat")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("dialect", ADVISING)
async def test_what_only_advises_is_left_out_and_named(
    house: House, client_of: MakeClient, dialect: str, provider: str
) -> None:
    keys = ADVISING[dialect]
    answer = await client_of(house, dialect).ask(provider, way=-1, **keys)
    assert answer.status == 200
    sent, told = house.fakes[provider].requests[-1].body, answer.headers.get("x-dragoman-changes", "")
    for name, value in keys.items():
        assert sent.get(name) == (value if provider == dialect else None)
        assert (name in told) == (provider != dialect)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_alters_the_answer_is_refused(house: House, client_of: MakeClient, provider: str) -> None:
    client = client_of(house, "databricks")
    answer = await client.ask(provider, way=-1, extra_params={"k": "v"})
    if provider == "databricks":
        assert answer.status == 200
        assert house.fakes[provider].requests[-1].body["extra_params"] == {"k": "v"}
    else:
        client.check_error(answer, "unsupported_parameter", "extra_params cannot be served")
        assert house.fakes[provider].requests == []


async def test_a_client_that_wants_extras_passed_on_does_not_pass_these(house: House, client_of: MakeClient) -> None:
    headers = {"extra-parameters": "pass-through"}
    answer = await client_of(house, "databricks").ask("azure", way=-1, client_request_id="c", foo=1, headers=headers)
    assert answer.status == 200
    sent = house.fakes["azure"].requests[-1].body
    assert (sent["foo"], "client_request_id" in sent) == (1, False)
