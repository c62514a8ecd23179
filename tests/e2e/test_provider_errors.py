"""What a client of each dialect gets for a provider's refusal, and which refusals are sent to another target."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from tests.dialects import DIALECTS

from .client import Client, MakeClient
from .house import BuildHouse


class Refusal(NamedTuple):
    status: int
    sentence: str
    kind: str
    code: str | None = None
    is_final: bool = False
    attempts: int = 1
    pauses: bool = False
    """Of targets that pause, only one is tried."""


REFUSALS = [
    Refusal(400, "This model's maximum context length is 4096 tokens", "invalid_request", "context_length_exceeded"),
    Refusal(500, "Context size has been exceeded", "invalid_request", "context_length_exceeded"),
    Refusal(403, "The endpoint is disabled due to a rate limit of 0", "permission", None, True, 2),
    Refusal(403, "Country, region, or territory not supported", "permission", None, True, 2),
    Refusal(403, "Your input was flagged for violence", "content_filter", None, False, 2),
    Refusal(400, "Your credit balance is too low", "rate_limit", None, True, 2, True),
    Refusal(400, "The engine is currently overloaded", "upstream_unavailable", None, True, 3),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.sentence)
async def test_a_refusal_in_every_dialect(
    build: BuildHouse, client_of: MakeClient, dialect: str, refusal: Refusal, subtests: pytest.Subtests
) -> None:
    guarded = {name: {"targets": [{"provider": name}], "fallbacks": ["openai"]} for name in DIALECTS}
    house = await build(more_models={f"guarded-{name}": model for name, model in guarded.items()})
    client = client_of(house, dialect)
    for provider in DIALECTS:
        for stream in (False, True):
            with subtests.test(provider=provider, stream=stream):
                await _check(client, provider, refusal, stream)


async def _check(client: Client, provider: str, refusal: Refusal, stream: bool) -> None:
    text = f"fake:status-{refusal.status}(message={refusal.sentence})"
    mark = f"{provider}-{stream}"
    answer = await client.ask(f"guarded-{provider}", text, stream=stream, headers={"x-request-id": mark})
    client.check_error(answer, refusal.kind, refusal.sentence, *([refusal.code] if refusal.code else []))
    assert answer.headers.get("x-should-retry") == ("false" if refusal.is_final else None)
    for _ in range(200):
        if (line := client.house.line(mark)) is not None:
            assert line["attempts"] in (refusal.attempts, 1 if refusal.pauses else refusal.attempts)
            return
        await asyncio.sleep(0.005)
    raise AssertionError("no line in the log")
