"""What becomes of cases: verdicts, retries, and when a run stops asking."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.contract.fake_upstream import FakeUpstream
from dragoman.contract.case_files import read_case_file
from dragoman.contract.model import Case
from dragoman.contract.runner import CaseRunner
from dragoman.contract.response_cache import list_unsent_requests, request_key
from dragoman.contract.target import Target
from dragoman.contract.verdicts import CaseResult
from dragoman.contract.exchange import Chunk, Request, Response, UnreachableError

HEAD = "protocol: chat\nsource: a reference\ncases:\n"
CASE = """
  - id: chat/text/{name}
    title: it answers
    level: {level}
    dialects: [openai]
    max_tokens: 10
    {more}
    steps:
      - &step
        request: {{body: {{{body}}}}}
        expect: {{status: 200, {expect}}}
"""
TWICE = "      - *step\n"


class Scripted:
    """A transport that answers from a list; the last answer is for all that follow."""

    def __init__(self, *answers: Answer | UnreachableError) -> None:
        self.answers = list(answers)
        self.asked: list[Asked] = []

    async def send(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, UnreachableError):
            raise answer
        return answer

    async def close(self) -> None: ...


def answer(status: int = 200, **body: object) -> Answer:
    return Answer(status, (("content-type", "application/json"),), (Chunk(0.0, json.dumps(body).encode()),))


def case(
    folder: Path,
    name: str = "one",
    level: str = "MUST",
    expect: str = "",
    more: str = "",
    body: str = "messages: []",
    end: str = "",
) -> Case:
    file = folder / f"{name}.yaml"
    file.write_text(HEAD + CASE.format(name=name, level=level, expect=expect, more=more, body=body) + end, "utf-8")
    return read_case_file(file)[0]


async def ran(transport: Scripted, cases: Sequence[Case], **options: object) -> list[CaseResult]:
    target = Target("http://x/v1", "openai", "m", key="secret")
    return await CaseRunner(target, transport, **options).run_cases(cases)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("level", "expect", "verdict"),
    [
        ("MUST", "checks: [{present: [id]}]", "pass"),
        ("MUST", "checks: [{present: [gone]}]", "fail"),
        ("SHOULD", "checks: [{present: [gone]}]", "warn"),
        ("MUST", "should: [{present: [gone]}]", "warn"),
        ("MUST", "cooperation: [{present: [gone]}], checks: [{present: [gone]}]", "inconclusive"),
    ],
)
async def test_the_level_makes_the_verdict(tmp_path: Path, level: str, expect: str, verdict: str) -> None:
    (result,) = await ran(Scripted(answer(id="x")), [case(tmp_path, level=level, expect=expect)])
    assert result.verdict == verdict
    assert ("gone" in result.reason) == (verdict != "pass")


async def test_a_model_that_does_not_cooperate_is_asked_once_more(tmp_path: Path) -> None:
    one = case(tmp_path, expect="cooperation: [{present: [id]}]")
    transport = Scripted(answer(), answer(id="x"))
    (result,) = await ran(transport, [one])
    assert (result.verdict, result.attempts, len(transport.asked)) == ("pass", 2, 2)


async def test_the_number_of_checks_is_fixed(tmp_path: Path) -> None:
    one = case(tmp_path, expect="schema: reply, checks: [has_text, usage_adds_up]")
    (good,) = await ran(Scripted(answer()), [one])
    (bad,) = await ran(Scripted(answer(500)), [one])
    (none,) = await ran(Scripted(UnreachableError("no")), [one])
    assert len(good.checks) == len(bad.checks) == len(none.checks) == 5
    assert [check.state for check in bad.checks] == ["broken", *["unreached"] * 4]
    assert (bad.verdict, none.verdict) == ("fail", "error")


async def test_the_first_401_ends_the_run(tmp_path: Path) -> None:
    cases = [case(tmp_path, name) for name in ("one", "two", "three")]
    transport = Scripted(answer(401))
    results = await ran(transport, cases)
    assert [result.verdict for result in results] == ["fail", "skip", "skip"]
    assert "is the key right?" in results[1].reason
    assert len(transport.asked) == 1


async def test_an_endpoint_that_is_not_there_is_not_asked_for_ever(tmp_path: Path) -> None:
    cases = [case(tmp_path, name) for name in ("one", "two", "three")]
    transport = Scripted(UnreachableError("refused"))
    assert [result.verdict for result in await ran(transport, cases)] == ["error", "error", "skip"]


async def test_a_protocol_that_is_not_served_is_skipped(tmp_path: Path) -> None:
    cases = [case(tmp_path, "one"), case(tmp_path, "two", more="probe: true")]
    transport = Scripted(answer(404))
    results = await ran(transport, cases)
    assert [result.verdict for result in results] == ["skip", "skip"]
    assert len(transport.asked) == 1


async def test_the_budget_is_kept(tmp_path: Path) -> None:
    cases = [case(tmp_path, name, body=f"user: {name}") for name in ("one", "two", "three")]
    results = await ran(Scripted(answer()), cases, budget=25)
    assert [result.verdict for result in results] == ["pass", "pass", "skip"]


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_cases_that_ask_alike_share_an_answer_and_its_cost(tmp_path: Path, concurrency: int) -> None:
    cases = [case(tmp_path, name) for name in ("one", "two", "three")]
    cases.append(case(tmp_path, "four", body="user: other"))
    transport = Scripted(answer(id="x"))
    results = await ran(transport, cases, budget=20, concurrency=concurrency)
    assert [result.verdict for result in results] == ["pass"] * 4
    assert (len(transport.asked), sum(result.tokens for result in results)) == (2, 20)
    target = Target("http://x/v1", "openai", "m", key="secret")
    known = [request_key(asked) for asked in transport.asked]
    assert [len(list_unsent_requests(one, target, known)) for one in cases] == [0, 0, 0, 0]
    assert [len(list_unsent_requests(one, target, ())) for one in cases] == [1, 1, 1, 1]


async def test_a_case_that_asks_twice_gets_two_answers(tmp_path: Path) -> None:
    cases = [case(tmp_path), case(tmp_path, "two", end=TWICE)]
    transport = Scripted(answer(id="x"))
    await ran(transport, cases)
    assert len(transport.asked) == 2
    assert len(list_unsent_requests(cases[1], Target("http://x/v1", "openai", "m", key="secret"), ())) == 2


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("first", [answer(429), answer(500), UnreachableError("no")])
async def test_what_may_be_better_in_a_moment_is_not_shared(
    tmp_path: Path, first: Answer | UnreachableError, concurrency: int
) -> None:
    cases = [case(tmp_path, name) for name in ("one", "two", "three")]
    results = await ran(Scripted(first, answer()), cases, concurrency=concurrency)
    assert [result.verdict == "pass" for result in results] == [False, True, True]


async def test_behind_a_proxy_nothing_is_shared(tmp_path: Path) -> None:
    cases = [case(tmp_path), case(tmp_path, "two")]
    transport = Scripted(answer())
    async with FakeUpstream("openai") as fake:
        results = await ran(transport, cases, behind=fake)
    assert len(transport.asked) == 2
    assert all(step.upstream is not None for result in results for step in result.steps)


async def test_cases_run_at_once_where_asked(tmp_path: Path) -> None:
    cases = [case(tmp_path, name) for name in ("one", "two", "three")]
    results = await ran(Scripted(answer()), cases, concurrency=3)
    assert [result.case.id for result in results] == [one.id for one in cases]


async def test_the_request_is_written_for_the_target(tmp_path: Path) -> None:
    transport = Scripted(answer())
    await ran(transport, [case(tmp_path)])
    (asked,) = transport.asked
    assert (asked.method, asked.url) == ("POST", "http://x/v1/chat/completions")
    assert asked.headers == {"Content-Type": "application/json", "Authorization": "Bearer secret"}
    assert json.loads(asked.body) == {"model": "m", "messages": []}
