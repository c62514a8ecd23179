"""The built-in cases: their number, texts and costs, and that correct fakes pass every MUST of their dialect."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import Counter

import pytest

from dragoman.contract.case_files import load_cases
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.model import PROTOCOLS, Case
from dragoman.contract.runner import CaseRunner
from dragoman.contract.session import Session
from dragoman.contract.target import Target
from dragoman.contract.transport import HttpTransport
from tests.dialects import DIALECTS

CASES = load_cases()
SERVED = {
    "openai": {"chat", "responses", "completions", "embeddings", "models"},
    "databricks": {"chat", "responses", "completions", "embeddings"},
    "azure": {"chat", "embeddings", "models"},
    "mindie": {"chat", "models"},
    "anthropic": {"messages", "count_tokens", "models"},
}
"""The protocols of each fake."""


def cases_of(dialect: str) -> list[Case]:
    return [case for case in CASES if case.dialect == dialect]


def test_cases_cover_dialects_protocols_and_levels() -> None:
    ids = {case.id for case in CASES}
    assert len(ids) >= 150
    assert {case.protocol for case in CASES} == set(PROTOCOLS)
    for dialect in DIALECTS:
        mine = cases_of(dialect)
        assert len([case for case in mine if not case.upstreams]) > 60
        assert len([case for case in mine if case.upstreams]) > 60
        assert {case.level for case in mine} == {"MUST", "SHOULD", "MAY"} or dialect in ("mindie", "anthropic")


def test_each_case_has_a_short_title_and_a_public_source() -> None:
    for case in CASES:
        assert case.id.startswith(f"{case.protocol}/"), case.id
        assert "${" not in case.id + case.title + case.source, case.id
        assert not case.title.endswith("."), case.id
        assert len(case.title) < 140, case.id
        assert not re.search(r"\b(dialects|peers|contract)\.md\b|\bseed\b s", case.source), case.id
    titles = Counter((case.protocol, case.title) for case in cases_of("openai") if case.upstreams == ())
    assert {title for title, times in titles.items() if times > 2} == set()


def test_run_of_a_dialect_costs_few_tokens() -> None:
    """Every request that a model answers has a token limit, and a run of a dialect costs less than 3500 tokens."""
    for dialect in DIALECTS:
        costs = list(Session(Target("http://x", dialect, "m", key="k"), CASES).forecast_costs())
        answered = [cost for cost in costs if cost.tokens and not cost.case.is_refusal]
        assert sum(cost.tokens for cost in answered) < 3500
        assert sum(cost.requests for cost in answered) < 100
        assert sum(cost.tokens for cost in costs) < 5500
        assert max(cost.tokens for cost in costs) <= 256
    for case in CASES:
        written = case.protocol in ("chat", "responses", "completions", "messages") and not case.upstreams
        if written and all(step.expect.status == (200,) for step in case.steps) and case.steps[0].request.get("body"):
            assert case.max_tokens > 0, case.id


def test_no_request_can_make_a_lenient_server_write_more_than_its_case_says() -> None:
    """A request has a token limit, or its case is hostile: it runs last, with a short timeout."""
    written = [case for case in CASES if case.protocol in LIMITS and not case.upstreams]
    assert {case.id for case in written if not case.hostile and sum(list_limits(case)) > case.max_tokens} == set()
    assert "chat/refuse/max-tokens-negative" in {case.id for case in written if case.hostile}


LIMITS = {
    "chat": ("max_tokens", "max_completion_tokens"),
    "completions": ("max_tokens",),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
}


def list_limits(case: Case) -> list[float]:
    """The token limits of the requests that a model might answer, infinity for a request without one."""
    found = []
    for step in case.steps:
        raw, body = step.request.get("raw"), step.request.get("body")
        if isinstance(raw, str):
            with contextlib.suppress(ValueError):
                body = json.loads(raw)
        if isinstance(body, dict) and not {"messages", "input", "prompt"}.isdisjoint(body):
            limit = next((body[name] for name in LIMITS[case.protocol] if name in body), None)
            number = body.get("n") if isinstance(body.get("n"), int) else 1
            found.append(limit * number if isinstance(limit, int) and limit >= 0 else math.inf)
    return found


def test_each_protocol_has_one_probe() -> None:
    probes = Counter((case.dialect, case.protocol) for case in CASES if case.probe)
    assert set(probes.values()) == {1}
    assert set(probes) == {(case.dialect, case.protocol) for case in CASES}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_correct_fake_passes_every_must(dialect: str) -> None:
    async with FakeProvider(dialect, api_key="sk-fake") as fake:
        target = Target(
            fake.base_url,
            dialect,
            "fake-model",
            key=None if dialect == "mindie" else "sk-fake",
            without=frozenset({"store"}),
            protocols=frozenset(SERVED[dialect]),
        )
        http = HttpTransport()
        results = await CaseRunner(target, http, concurrency=8).run_cases(cases_of(dialect))
        await http.close()
    bad = [(r.case.id, r.verdict, r.reason) for r in results if r.verdict in ("fail", "error", "inconclusive")]
    assert bad == []
    assert sum(result.verdict == "pass" for result in results) > 60
    assert len([result for result in results if result.verdict == "warn"]) < 6
