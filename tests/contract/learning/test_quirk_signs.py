"""The quirks of the tables are found in the answers of a server that has them, and in no usual answer."""

from __future__ import annotations

import pytest

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.fakes.selection import SelectedBehaviour, parse_behaviour
from dragoman.contract.json_types import JsonObject
from dragoman.contract.learning.quirk_signs import list_signs
from dragoman.contract.quirk_files import Quirk, load_quirks
from tests.contract.learning.learned import learn_fake
from tests.tables import sample_rows

CHAT = [
    one for one in load_quirks().values() if not one.is_error and one.protocol == "chat" and one.upstream == "openai"
]
SIGNED = [one for one in CHAT if any(list_signs(one.name, form) for form in one.forms)]


class QuirkyFake(FakeProvider):
    """Has the quirk in the forms that the quirk has, and answers as usual in the other one."""

    def __init__(self, quirk: Quirk) -> None:
        super().__init__("openai", behaviour=f"quirk(name={quirk.name})")
        self._quirk, self._usual = quirk, parse_behaviour("as-asked", "openai")

    def _choose_behaviour(self, body: JsonObject, model: str) -> SelectedBehaviour:
        form = "streamed" if body.get("stream") else "whole"
        return super()._choose_behaviour(body, model) if form in self._quirk.forms else self._usual


def test_most_quirks_of_chat_have_signs() -> None:
    assert len(SIGNED) >= len(CHAT) * 0.8


@pytest.mark.parametrize("quirk", sample_rows(SIGNED, 4), ids=[one.name for one in SIGNED])
async def test_each_quirk_with_signs_is_found(quirk: Quirk) -> None:
    async with QuirkyFake(quirk) as fake:
        findings = await learn_fake(fake, dialect="openai")
    assert quirk.name in dict(findings.list_below("quirks"))


@pytest.mark.parametrize("dialect", ["openai", "databricks", "azure", "mindie", "anthropic"])
async def test_usual_answers_have_no_quirks(dialect: str) -> None:
    """Only the fakes' reasoning has a form that OpenAI's has not."""
    async with FakeProvider(dialect, behaviour="text") as fake:
        findings = await learn_fake(fake)
    assert list(dict(findings.list_below("quirks"))) == []
