"""What has changed since an endpoint was learned."""

from __future__ import annotations

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.learning.drift import compare_findings, compare_settings, render_diff
from dragoman.contract.learning.entry import derive_settings
from dragoman.contract.learning.findings import Evidence, Findings
from tests.contract.learning.learned import learn_fake


def make_findings(**facts: object) -> Findings:
    """Findings of an openai endpoint; `__` in a name is a dot."""
    findings = Findings("http://x/v1", "openai", "m")
    for name, value in {"protocols__chat": True, **facts}.items():
        findings.learn(name.replace("__", "."), value, Evidence("asked", "answered"))
    return findings


async def test_the_same_endpoint_has_not_changed() -> None:
    async with FakeProvider("databricks", behaviour="refuses(param=stop)") as fake:
        old, new = await learn_fake(fake), await learn_fake(fake)
    assert compare_findings(old, new).differences == ()
    assert compare_settings(derive_settings(old), new).differences == ()


async def test_a_field_that_is_refused_now_is_a_difference() -> None:
    async with FakeProvider("openai") as fake:
        old = await learn_fake(fake)
        fake.behaviour = "refuses(param=seed)"
        new = await learn_fake(fake)
    names = {one.name: (one.old, one.new) for one in compare_findings(old, new).differences}
    assert names["fields.chat.seed"] == ("accepted", "refused")
    (difference,) = [one for one in compare_settings(derive_settings(old), new).differences if one.name == "lacks.seed"]
    assert (difference.old, difference.new) == (None, True)
    assert difference.evidence is not None
    assert '"seed": 7' in difference.evidence.sent


def test_what_is_not_known_on_one_side_is_a_note() -> None:
    old, new = make_findings(fields__chat__n="accepted"), make_findings()
    new.give_up("fields.chat.n", "the budget is used up")
    for drift in (compare_findings(old, new), compare_findings(new, old)):
        assert drift.differences == ()
        assert drift.notes == ("fields.chat.n is not compared: the budget is used up",)


def test_a_quirk_that_is_not_seen_this_time_is_a_note_and_a_new_one_a_difference() -> None:
    old, new = make_findings(quirks__a="A"), make_findings(quirks__b="B")
    drift = compare_findings(old, new)
    assert [one.name for one in drift.differences] == ["quirks.b"]
    assert drift.notes == ("quirks.a is not seen this time",)


def test_the_order_of_models_is_no_difference() -> None:
    assert compare_findings(make_findings(models=["a", "b"]), make_findings(models=["b", "a"])).differences == ()
    assert compare_findings(make_findings(models=["a"]), make_findings(models=["b", "a"])).differences != ()


def test_settings_that_nobody_has_set_are_compared_only_if_that_means_something() -> None:
    new = make_findings(profile="actual", fields__chat__n="ignored")
    drift = compare_settings({"dialect": "openai", "protocols": ["chat"]}, new)
    assert [one.name for one in drift.differences] == ["lacks.n"]


def test_a_configured_lack_that_is_never_asked_for_is_a_note() -> None:
    drift = compare_settings({"dialect": "openai", "protocols": ["chat"], "lacks": ["audio"]}, make_findings())
    assert drift.differences == ()
    assert "audio" in drift.notes[0]


def test_the_diff_has_both_values_and_what_shows_the_new_one() -> None:
    drift = compare_findings(make_findings(fields__chat__n="accepted"), make_findings(fields__chat__n="ignored"))
    assert render_diff(drift, "old", "new") == (
        "--- old\n+++ new\n-fields.chat.n: accepted\n+fields.chat.n: ignored\n     asked -> answered\n"
    )
    assert drift.to_json()["changed"] is True
