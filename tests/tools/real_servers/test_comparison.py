"""The comparison and the recorder, against fake providers in place of real servers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.masks import Mask
from dragoman.contract.recordings import ReplayTransport, find_takes, hash_request
from tools.real_servers.catalog import SERVERS, Server
from tools.real_servers.comparison import POLICIES, Comparison, Outcome, ask, compare, judge
from tools.real_servers.page import count_defects, write_page
from tools.real_servers.processes import RunningServer
from tools.real_servers.questions import QUESTIONS
from tools.real_servers.recorder import record
from tools.real_servers.sdk import TransportAdapter, create_client

FAKE = Server(
    "fake", "a fake", ("fake==1",), (), dict.fromkeys(("chat", "completions", "embeddings", "responses"), "m")
)


def run_fake(fake: FakeProvider) -> RunningServer:
    return RunningServer(FAKE, fake.port, Path("no.log"), (f"127.0.0.1:{fake.port}",))


async def test_what_works_directly_works_through_dragoman() -> None:
    async with FakeProvider("openai") as fake:
        rows = await compare(run_fake(fake))
    assert [row.question for row in rows] == [question.name for question in QUESTIONS]
    verdicts = Counter(judge(row.direct, row.through[policy], policy) for row in rows for policy in POLICIES)
    assert verdicts["same"] > 2 * len(QUESTIONS)
    assert not verdicts["BREAKS"] + verdicts["DIFFERS"]
    measurement = {"version": "1.2.3", "sdk": "9.9", "comparisons": [row.to_json() for row in rows]}
    assert count_defects(measurement) == 0
    page = write_page({"vllm": measurement})
    assert "| [vLLM, CPU build](#vllm-cpu-build-123) | 1.2.3 |" in page
    assert "Measured with version 9.9 of" in page
    assert "| chat | right | same | same | same | same |" in page


async def test_recordings_give_the_sdk_the_same_again(tmp_path: Path) -> None:
    chat = next(question for question in QUESTIONS if question.name == "chat, streamed")
    async with FakeProvider("openai") as fake:
        running = run_fake(fake)
        await record(running, tmp_path / "fake", tmp_path)
        async with create_client(running.base_url, "none") as client:
            first = await ask(chat, client, "m")
    replay = TransportAdapter(ReplayTransport(tmp_path / "fake"), "http://replayed/v1")
    async with create_client("http://replayed/v1", "none", replay) as client:
        assert await ask(chat, client, "m") == first
    files = sorted(file.name for file in (tmp_path / "fake").iterdir())
    assert any(name.startswith("chat-streamed.") for name in files)
    texts = "".join(file.read_text("utf-8") for file in (tmp_path / "fake").iterdir())
    assert str(running.port) not in texts
    assert str(tmp_path) not in texts


RIGHT, OTHER = Outcome("right", facts={"text": "a"}), Outcome("right", facts={"text": "b"})
WRONG, LOSS, REFUSED = Outcome("wrong"), Outcome("wrong", losses=("n: 1 choice",)), Outcome("refused", "400")


@pytest.mark.parametrize(
    ("direct", "through", "policy", "verdict"),
    [
        (RIGHT, RIGHT, "off", "same"),
        (RIGHT, OTHER, "off", "DIFFERS"),
        (RIGHT, WRONG, "strict", "BREAKS"),
        (RIGHT, REFUSED, "repair", "BREAKS"),
        (RIGHT, REFUSED, "strict", "refused"),
        (WRONG, RIGHT, "repair", "repaired"),
        (WRONG, WRONG, "off", "as direct"),
        (WRONG, LOSS, "repair", "recorded"),
        (WRONG, REFUSED, "repair", "refused"),
        (REFUSED, REFUSED, "repair", "as direct"),
        (REFUSED, WRONG, "repair", "wrong"),
    ],
)
def test_only_strict_may_refuse_what_works(direct: Outcome, through: Outcome, policy: str, verdict: str) -> None:
    assert judge(direct, through, policy) == verdict


def test_answers_that_are_lost_or_differ_are_defects() -> None:
    through = {"off": RIGHT, "report": OTHER, "repair": REFUSED, "strict": REFUSED}
    measurement = {"comparisons": [Comparison("chat", RIGHT, through).to_json()]}
    assert count_defects(measurement) == 2


def test_a_fact_that_may_differ_is_ignored() -> None:
    assert judge(RIGHT, OTHER, "off", ("text",)) == "same"


def test_versions_are_pinned_and_gateways_have_servers() -> None:
    assert all("==" in package for server in SERVERS.values() for package in server.packages)
    assert {server.behind for server in SERVERS.values()} <= {"", *SERVERS}
    assert {server.home for server in SERVERS.values()} <= set(SERVERS)
    assert len({question.slug for question in QUESTIONS}) == len(QUESTIONS)


def test_a_label_does_not_hide_a_recording(tmp_path: Path) -> None:
    key = hash_request("POST", "/chat/completions", b"{}")
    for name in (f"{key}.json", f"label.{key}-2.json", f"other.{key}-3.json"):
        (tmp_path / name).write_text(Mask()("{}"))
    assert [file.name for file in find_takes(tmp_path, key)] == [
        f"{key}.json",
        f"label.{key}-2.json",
        f"other.{key}-3.json",
    ]
