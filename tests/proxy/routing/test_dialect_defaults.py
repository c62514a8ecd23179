"""What a provider's configuration leaves out, its dialect decides."""

from __future__ import annotations

from dataclasses import replace

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.providers import ProviderState
from dragoman.proxy.routing.state import RouterState
from tests.proxy.no_upstream import NoUpstream

OWN = replace(dialects["openai"], called_profile="documented", default_protocols=("embeddings", "completions"))


def provider(**settings: JsonValue) -> ProviderState:
    given = {"dialect": "openai", "base_url": "http://127.0.0.1/v1", **settings}
    config = Config.from_values({"providers": {"p": given}, "models": {"m": {"targets": [{"provider": "p"}]}}})
    state = RouterState(config, {"openai": OWN}, create_upstream=NoUpstream)
    candidate = next(state.list_candidates("m", ANYONE, None))
    assert candidate.target.profile == candidate.provider.profile
    return candidate.provider


async def test_the_profile_and_the_protocols_are_the_dialects_own() -> None:
    found = provider()
    assert (found.profile, set(found.protocols)) == ("documented", {"embeddings", "completions"})


async def test_the_configuration_comes_first() -> None:
    found = provider(profile="actual", protocols=["chat"])
    assert (found.profile, set(found.protocols)) == ("actual", {"chat"})
