"""What is learned of fake providers, whose truth is known."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from dragoman.contract.dialects import DIALECTS, load_dialect
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.learning.entry import EntryNames, derive_settings, render_entry
from dragoman.contract.learning.findings import Findings
from dragoman.contract.learning.learner import LearnError, forecast_cost
from dragoman.contract.learning.probes import load_probes
from dragoman.schemas import load
from tests.contract.learning.learned import learn_fake, make_learner
from tests.tables import sample_rows

PROFILES: Mapping[str, set[str | None]] = {
    "openai/documented": {None, "documented"},
    "openai/actual": {None, "actual"},
    "databricks/documented": {"documented"},
    "databricks/actual": {"actual"},
    "azure/documented": {"documented"},
    "azure/actual": {"actual"},
    "mindie/documented": {"documented"},
    "mindie/actual": {None},
    "mindie/native": {None},
    "anthropic/documented": {None, "documented"},
    "anthropic/actual": {None, "actual"},
}
"""What may be learned: None if two profiles do not differ in anything that the fake shows."""


@pytest.mark.parametrize(
    ("dialect", "profile"), [(name, profile) for name in DIALECTS for profile in load_dialect(name).profiles]
)
async def test_dialect_profile_and_protocols_of_each_fake_are_learned(dialect: str, profile: str) -> None:
    async with FakeProvider(dialect, profile=profile) as fake:
        findings = await learn_fake(fake)
        assert (findings.dialect, findings.base_url) == (dialect, fake.base_url)
        served = set(load_dialect(dialect).paths) - {"models", "count_tokens"}
        assert set(findings.protocols) | set(_list_unclear_protocols(findings)) == served
        assert findings.get("profile") in PROFILES[f"{dialect}/{profile}"]
        cost = forecast_cost(fake.origin)
        assert findings.requests == len(fake.requests) <= cost.most_requests
        assert findings.tokens <= cost.most_tokens
        if profile == "actual":
            assert "lacks" not in derive_settings(findings)
            assert "takes" not in derive_settings(findings)


def _list_unclear_protocols(findings: Findings) -> list[str]:
    """The fake of documented Databricks needs fields in Responses that no request of learning has."""
    return [name.partition(".")[2] for name in findings.unknown if name.startswith("protocols.")]


async def test_what_nobody_outside_can_see_is_said() -> None:
    async with FakeProvider("openai") as fake:
        findings = await learn_fake(fake)
    assert {"limits.max_tokens", "reasoning_replay"} <= findings.unknown.keys()


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if load_dialect(name).models is not None])
async def test_the_model_is_the_one_that_the_endpoint_lists(dialect: str) -> None:
    async with FakeProvider(dialect) as fake:
        findings = await learn_fake(fake, model="")
    assert findings.model == "fake-model"
    assert findings.get("models") == ["fake-model"]


@pytest.mark.parametrize("path", ["", "/v1", "/v1/", "/v1/chat/completions", "/v1/models"])
async def test_the_base_address_is_found_from_any_address(path: str) -> None:
    async with FakeProvider("openai") as fake:
        learner = make_learner(fake.origin + path, budget=0)
        with pytest.raises(LearnError, match="budget"):
            await learner.learn()
        await learner.transport.close()
        assert learner.findings.base_url == fake.base_url


@pytest.mark.parametrize("field", sample_rows([probe.field for probe in load_probes().fields["chat"]], 5))
async def test_a_refused_field_is_lacking_and_no_other(field: str) -> None:
    async with FakeProvider("openai", behaviour=f"refuses(param={field})") as fake:
        findings = await learn_fake(fake)
    assert findings.get(f"fields.chat.{field}") == "refused"
    settings = derive_settings(findings)
    if field == "max_tokens":
        assert settings["max_tokens_name"] == "max_completion_tokens"
    elif field == "max_completion_tokens":
        assert settings["max_tokens_name"] == "max_tokens"
    else:
        assert settings["lacks"][0] == field or field in settings["lacks"]
        assert set(settings["lacks"]) == {field}


@pytest.mark.parametrize("dialect", ["databricks", "azure", "mindie"])
async def test_a_field_is_taken_only_if_unknown_fields_are_refused(dialect: str) -> None:
    """The fake without validation accepts every field, so that acceptance shows nothing."""
    async with FakeProvider(dialect, validate=False) as fake:
        findings = await learn_fake(fake, dialect=dialect)
    assert "takes" not in derive_settings(findings)
    assert "any unknown field" in findings.unknown["fields.chat.user"]


async def test_fields_that_the_api_lacks_and_the_endpoint_has_are_taken() -> None:
    """The fake's API has no `seed`; this endpoint has, and refuses other unknown fields."""
    async with FakeProvider("databricks", validate=False, behaviour="refuses(param=x_dragoman_learn)") as fake:
        findings = await learn_fake(fake)
    assert "seed" in derive_settings(findings)["takes"]
    known = load("databricks/chat.request", "actual")["properties"]
    assert not known.keys() & set(derive_settings(findings)["takes"])


@pytest.mark.parametrize("behaviour", ["quirk(name=shape/only-choices)", "length"])
async def test_an_endpoint_that_ignores_n_lacks_it(behaviour: str) -> None:
    async with FakeProvider("openai", behaviour=behaviour) as fake:
        findings = await learn_fake(fake)
    if behaviour.startswith("quirk"):
        assert findings.get("fields.chat.n") == "ignored"
        assert "n" in derive_settings(findings)["lacks"]
    else:
        assert findings.get("fields.chat.n") == "accepted"


async def test_a_busy_endpoint_shows_nothing() -> None:
    async with FakeProvider("openai") as fake:
        usual = await learn_fake(fake)
        fake.script(*["rate-limit(retry_after=1)"] * 5)
        busy = await learn_fake(fake)
    assert {name: one.value for name, one in busy.facts.items()} == {
        name: one.value for name, one in usual.facts.items()
    }
    assert busy.requests == usual.requests + 5


async def test_one_failure_shows_nothing() -> None:
    async with FakeProvider("openai") as fake:
        learner = make_learner(fake.origin)
        learner.say = lambda text: fake.script("status-500") if text == "fields of chat" else None
        await learner.learn()
        await learner.transport.close()
    assert "lacks" not in derive_settings(learner.findings)


async def test_a_field_that_stops_the_endpoint_every_time_is_lacking() -> None:
    async with FakeProvider("openai", behaviour="refuses(param=seed)") as fake:
        findings = await learn_fake(fake)
    shown = findings.facts["fields.chat.seed"].evidence
    assert shown is not None
    assert '{"seed": 7}' in shown.sent
    assert shown.received.startswith("400 ")


async def test_nothing_is_sent_beyond_the_budget() -> None:
    async with FakeProvider("openai") as fake:
        findings = await learn_fake(fake, budget=300)
    assert findings.tokens <= 300
    assert any("budget" in why for why in findings.unknown.values())


async def test_a_wrong_key_is_reported_and_not_learned() -> None:
    async with FakeProvider("openai", api_key="sk-right") as fake:
        learner = make_learner(fake.origin, key="sk-wrong-canary")
        with pytest.raises(LearnError, match="refuses the key") as caught:
            await learner.learn()
        await learner.transport.close()
    assert "sk-wrong-canary" not in str(caught.value)


@pytest.mark.parametrize("behaviour", ["text(say={})", "status-400(message={})", "text(say=a {} b)"])
async def test_the_key_is_in_no_output(behaviour: str) -> None:
    """The endpoint repeats the key in its errors and texts."""
    key = "sk-canary-0123456789"
    async with FakeProvider("openai", api_key=key) as fake:
        await learn_fake(fake)
        fake.script(*["as-asked"] * 30, *[behaviour.format(key)] * 200)
        findings = await learn_fake(fake)
    entry = render_entry(findings, EntryNames("p", "KEY"), "dragoman learn")
    assert key not in entry
    assert key not in json.dumps(findings.to_json())
    assert "api_key: ${KEY}" in entry


async def test_an_endpoint_that_is_gone_leaves_what_is_known() -> None:
    async with FakeProvider("openai") as fake:
        learner = make_learner(fake.origin)

        def end(text: str) -> None:
            if text == "fields of chat":
                fake.script(*["cut-before"] * 200)

        learner.say = end
        await learner.learn()
        await learner.transport.close()
    assert "does not answer any more" in learner.findings.interrupted
    assert "chat" in learner.findings.protocols
    assert "Not complete" in render_entry(learner.findings, EntryNames("p"), "dragoman learn")


async def test_nothing_that_answers_is_an_error() -> None:
    learner = make_learner("http://127.0.0.1:9")
    with pytest.raises(LearnError, match="nothing answers"):
        await learner.learn()
    await learner.transport.close()


async def test_a_report_is_read_as_it_was_written() -> None:
    async with FakeProvider("mindie") as fake:
        findings = await learn_fake(fake)
    again = Findings.from_json(json.loads(json.dumps(findings.to_json())))
    assert again.facts == findings.facts
    assert again.unknown == findings.unknown
