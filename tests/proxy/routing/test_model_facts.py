"""What is documented about a model decides which protocols its target is called with, unless the configuration does."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.routing.targets import Candidate
from tests.proxy.no_upstream import NoUpstream


def find_candidate(pattern: str, name: str, dialect: str = "databricks", **settings: JsonValue) -> Candidate:
    given = {"dialect": dialect, "base_url": "https://x.cloud.databricks.com", **settings}
    config = Config.from_values({"providers": {"p": given}, "models": {pattern: {"targets": [{"provider": "p"}]}}})
    return next(RouterState(config, dialects, create_upstream=NoUpstream).list_candidates(name, ANYONE, None))


@pytest.mark.parametrize("pattern", ["databricks-gpt-5", "databricks-*", "*"])
async def test_databricks_has_responses_for_openai_s_models(pattern: str) -> None:
    plan = find_candidate(pattern, "databricks-gpt-5").plan
    assert plan.for_protocol("responses").protocol == "responses"
    assert plan.for_protocol("chat").protocol == "chat"


@pytest.mark.parametrize("name", ["databricks-claude-sonnet-4-5", "databricks-gpt-oss-120b", "my-endpoint"])
@pytest.mark.parametrize("pattern", [None, "*"])
async def test_other_models_are_called_with_chat(pattern: str | None, name: str) -> None:
    assert find_candidate(pattern or name, name).plan.for_protocol("responses").protocol == "chat"


async def test_the_protocols_of_the_configuration_count() -> None:
    plan = find_candidate("databricks-gpt-5", "databricks-gpt-5", protocols=["chat"]).plan
    assert plan.for_protocol("responses").protocol == "chat"


async def test_the_candidate_of_a_name_is_kept_and_their_number_is_bounded() -> None:
    first = find_candidate("*", "a")
    assert first.adapt("a", None) is first
    assert first.adapt("b", None) is first.adapt("b", None)
    assert first.adapt("b", "drop") is not first.adapt("b", None)
    kept = first.adapt("b", None)
    for number in range(1000):
        assert first.adapt(f"m{number}", None).target.model == f"m{number}"
    assert first.adapt("b", None) is not kept


async def test_a_model_of_a_pattern_has_its_own_facts() -> None:
    one, other = (find_candidate("*", name) for name in ("databricks-gpt-5", "databricks-claude-sonnet-4-5"))
    assert (one.target.facts.vendor, other.target.facts.vendor) == ("OpenAI", "Anthropic")
    assert one.plan.called == ("chat", "responses")
