"""What the page offers for a replay."""

from __future__ import annotations

from .page_client import PageClient


async def test_policies_targets_and_profiles_can_be_chosen(page: PageClient) -> None:
    about = await page.read("about")
    policies = {one["name"]: one["values"] for one in about["policies"]}
    assert policies["unsupported"] == ["refuse", "refuse-exactly", "drop"]
    assert policies["emulate_completions"] == [True, False]
    assert "databricks/fake-model" in about["targets"]
    assert about["profiles"]["databricks"] == ["documented", "actual"]


async def test_every_sample_of_the_playground_is_answered(page: PageClient) -> None:
    about = await page.read("about")
    answers = {}
    for one in about["serves"]:
        asked = {"path": one["path"], "headers": one["headers"], "body": one["sample"]}
        answers[one["dialect"], one["protocol"]] = await page.post("send", asked)
    assert {name: text for name, (status, text) in answers.items() if status != 200} == {}
    assert ("azure", "chat") in answers
    paths = {(one["dialect"], one["protocol"]): one["path"] for one in about["serves"]}
    assert paths["openai", "chat"] == "/v1/chat/completions", "the address that the docs name"
    assert ("anthropic", "count_tokens") in answers
