"""Service tiers that only Groq has reach it, and other providers go without its default one."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call
from dragoman.adapters.faults import Fault
from dragoman.contract.json_types import JsonObject
from tests.adapters.conftest import MakeContext


def body(tier: str) -> JsonObject:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], "service_tier": tier}


def read(tier: str, context: MakeContext) -> JsonObject:
    return dialects["openai"].served["chat"].read_request(Call("POST", "/v1/chat/completions", body(tier)), context())


@pytest.mark.parametrize("tier", ["on_demand", "performance"])
def test_servers_of_the_dialect_get_them(tier: str, context: MakeContext) -> None:
    request = read(tier, context)
    call = dialects["openai"].called["chat"].write_request(request, context(request=request))
    assert call.body["service_tier"] == tier


@pytest.mark.parametrize("provider", ["azure", "databricks", "mindie"])
def test_other_providers_go_without_the_default_one(provider: str, context: MakeContext) -> None:
    ctx = context(request=read("on_demand", context))
    assert "service_tier" not in dialects[provider].called["chat"].write_request(ctx.request, ctx).body
    assert [change.weight for change in ctx.receipt.changes if change.before == ("service_tier",)] == ["loss"]


def test_a_word_that_nobody_knows_is_a_mistake(context: MakeContext) -> None:
    with pytest.raises(Fault, match="on_demand") as caught:
        read("ondemand", context)
    assert caught.value.path == ("service_tier",)
