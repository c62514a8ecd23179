"""Endpoints that answer with anything: what is learned of them is short, harmless on a terminal, and bounded."""

from __future__ import annotations

import json

import pytest

from dragoman.contract.dialects import load_dialect
from dragoman.contract.exchange import NO_END, TOO_LONG, Chunk, Request, Response
from dragoman.contract.learning.entry import EntryNames, render_entry
from dragoman.contract.learning.learner import Learner, LearnError
from dragoman.contract.pacing import Pacer
from dragoman.proxy.config.load import check_text

ESCAPE = "\x1b[2J\x1b]0;owned\x07\nproviders: {}"
REPLY = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": ESCAPE,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": f"hello {ESCAPE}"}, "finish_reason": ESCAPE}],
}


class Endpoint:
    """A Transport that gives every request the same answer."""

    def __init__(self, status: int, body: bytes, broken: str | None) -> None:
        self._response = Response(status, (("content-type", "application/json"),), (Chunk(0.0, body),), broken)
        self.count = 0

    async def send(self, request: Request) -> Response:
        self.count += 1
        return self._response

    async def close(self) -> None:
        """Nothing is open."""


def make_learner(status: int, body: bytes, broken: str | None = None) -> Learner:
    endpoint = Endpoint(status, body, broken)
    return Learner("http://127.0.0.1:9/v1", endpoint, Pacer(0.0, 0.0), dialect="openai", model="m")


async def test_an_error_that_controls_a_terminal_is_shown_without_that() -> None:
    learner = make_learner(400, json.dumps({"error": {"message": ESCAPE}}).encode())
    with pytest.raises(LearnError, match="owned") as caught:
        await learner.learn()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("more", ["", '"usage": ' + "[" * 400 + "]" * 400 + ","], ids=["escapes", "deep"])
async def test_a_reply_that_controls_a_terminal_leaves_a_valid_entry(more: str) -> None:
    learner = make_learner(200, ("{" + more + json.dumps(REPLY)[1:]).encode())
    await learner.learn()
    text = render_entry(learner.findings, EntryNames("p"), f"dragoman learn {ESCAPE}")
    assert all(line.isprintable() for line in text.splitlines())
    assert list(check_text(text, "p.yaml", {}).config.providers) == ["p"]
    shown = [one.evidence for one in learner.findings.facts.values() if one.evidence is not None]
    assert all(f"{one.sent}{one.received}".isprintable() for one in shown)


@pytest.mark.parametrize("broken", [f"{NO_END} 60 s", f"{TOO_LONG} 33554432 bytes"])
async def test_a_reply_without_an_end_is_not_asked_for_again(broken: str) -> None:
    learner = make_learner(200, json.dumps(REPLY).encode(), broken)
    with pytest.raises(LearnError, match=broken):
        await learner.learn()
    protocols = len(load_dialect("openai").paths) - 1  # one of the paths is the list of models
    assert learner.findings.requests == 2 + protocols  # the two of the choice of the dialect, and one for each


async def test_large_replies_are_judged_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    monkeypatch.setattr(
        "dragoman.contract.learning.learner.find_quirks", lambda outcomes, dialect: kept.append(len(outcomes)) or {}
    )
    for size in (1_000, 300_000):
        learner = make_learner(200, json.dumps({**REPLY, "padding": "x" * size}).encode())
        await learner.learn()
        assert "chat" in learner.findings.protocols
    assert kept[0] > 20
    assert kept[1] == 0
