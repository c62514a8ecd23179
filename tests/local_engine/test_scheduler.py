"""Steps of the scheduler: what a choice ends by, what is told when, and what one request's trouble is to others."""

from __future__ import annotations

from typing import Any

import pytest
from engine_rig import GREEDY, Rigs
from hypothesis import given
from hypothesis import strategies as st

from dragoman.local_engine.generation import Delta, Failed, Finished, SamplingParams
from dragoman.local_engine.batching.scheduler import next_prefill_size
from dragoman.local_engine.batching.slot_table import MIN_REUSED_TOKENS, SlotAssignment, SlotTable

HELLO = list(b"hello there, how are you")


@given(st.integers(2, 5000), st.integers(3, 600))
def test_pieces_are_never_single_tokens(left: int, piece: int) -> None:
    while left:
        size = next_prefill_size(left, piece)
        assert 2 <= size <= piece
        left -= size
    assert next_prefill_size(1, piece) == 1


def test_end_tokens_end_and_are_not_shown(rigs: Rigs) -> None:
    rig = rigs()
    rig.run(rig.request(HELLO, 20))
    tokens = rig.tokens()
    end = tokens[6]
    first = tokens.index(end)
    rig.run(rig.request(HELLO, 20, stop_ids=frozenset([end])), 1)
    assert rig.tokens(1) == tokens[:first]
    assert (rig.end(1).reason, rig.end(1).stop, rig.end(1).usage.completion) == ("stop", end, first + 1)


def test_the_models_own_end_token_counts_unless_ignored(rigs: Rigs) -> None:
    rig = rigs()
    bias = SamplingParams(temperature=0, logit_bias={256: 100.0})
    rig.run(rig.request(HELLO, 5, sampling=bias, ignore_eos=False))
    rig.run(rig.request(HELLO, 5, sampling=bias), 1)
    assert (rig.end().reason, rig.tokens()) == ("stop", [])
    assert (rig.end(1).reason, rig.tokens(1)) == ("length", [256] * 5)


def only(*tokens: int) -> SamplingParams:
    """Greedy, but with these tokens far ahead of all others, the first most, each once."""
    return SamplingParams(
        temperature=0, presence_penalty=900.0, logit_bias={token: 400.0 - 40 * i for i, token in enumerate(tokens)}
    )


def test_stop_strings_are_held_back_and_never_told(rigs: Rigs) -> None:
    rig = rigs()
    rig.add(0, rig.request(HELLO, 9, sampling=only(*b"xySTOP!"), stop=("STOP",)))
    seen = []
    while rig.scheduler.has_work:
        rig.step()
        seen.append(rig.text())
    assert seen == ["xy"] * len(seen), "S, ST and STO are held back"
    assert (rig.tokens(), rig.end().reason, rig.end().stop) == (list(b"xy"), "stop", "STOP")
    assert rig.end().usage.completion == 6


def test_held_back_text_comes_at_the_end_if_no_stop_string_did(rigs: Rigs) -> None:
    rig = rigs()
    rig.run(rig.request(HELLO, 4, sampling=only(*b"xyST"), stop=("STOP",)))
    assert (rig.text(), rig.tokens(), rig.end().reason) == ("xyST", list(b"xyST"), "length")


def test_log_probabilities_come_with_their_tokens(rigs: Rigs) -> None:
    rig = rigs()
    rig.run(rig.request(HELLO, 24, sampling=SamplingParams(temperature=0, logprobs=1)))
    deltas = [event for event in rig.events[0] if isinstance(event, Delta)]
    for delta in deltas:
        assert [entry.token for entry in delta.logprobs] == list(delta.tokens)
        assert all(entry.top[0] == (entry.token, entry.logprob) for entry in delta.logprobs)
    assert len(rig.tokens()) == 24


def test_a_full_context_ends_the_text(rigs: Rigs) -> None:
    rig = rigs(length=40)
    for ticket, size in enumerate((39, 38, 24)):
        rig.add(ticket, rig.request([ticket * 7 + i for i in range(size)], 100))
    rig.drain()
    assert [len(rig.tokens(ticket)) for ticket in range(3)] == [1, 2, 16]
    assert {rig.end(ticket).reason for ticket in range(3)} == {"length"}


@pytest.mark.parametrize("layout", ["gqa", "concat"])
def test_a_cancelled_slot_is_free_before_the_next_step(rigs: Rigs, layout: str) -> None:
    rig = rigs("llama", "fp32", layout, slots=1)
    rig.add(0, rig.request(HELLO, 100))
    rig.add(1, rig.request(HELLO, 3))
    rig.step()
    assert (rig.scheduler.running_count, len(rig.scheduler.waiting)) == (1, 1)
    rig.cancel(0)
    assert rig.end(0).reason == "cancelled" and rig.scheduler.running_count == 0
    rig.step()
    assert rig.scheduler.running_count == 1 and not rig.scheduler.waiting


def test_a_long_prompt_does_not_hold_others_up(rigs: Rigs) -> None:
    rig = rigs(piece=16)
    rig.add(0, rig.request(HELLO, 50))
    rig.step()
    rig.step()
    before = len(rig.tokens(0))
    rig.add(1, rig.request(list(range(100)), 5))
    steps = 0
    while not rig.events[1]:
        rig.step()
        steps += 1
    assert steps == 7, "100 tokens in pieces of 16"
    held = sum(len(event.tokens) for event in rig.events[0] if isinstance(event, Delta))
    assert held >= before + steps - 4


def test_prompts_with_a_common_beginning_reuse_it(rigs: Rigs) -> None:
    rig = rigs()
    long = [i % 200 for i in range(90)]
    rig.run(rig.request(long, 3))
    rig.run(rig.request([*long[:60], 1, 2, 3], 3), 1)
    rig.run(rig.request(long, 3), 2)
    assert [rig.end(ticket).usage.cached for ticket in range(3)] == [0, 60, 60]
    assert rig.tokens(0) == rig.tokens(2)


class Rule:
    """A TokenMask that lets a text be spelled, and then is complete."""

    def __init__(self, text: bytes) -> None:
        self.left = list(text)

    def fill(self, words: memoryview) -> bool:
        token = self.left[0]
        words[token // 32] |= 1 << (token % 32)
        return True

    def accept(self, token: int) -> bool:
        assert token == self.left.pop(0)
        return not self.left


class Free(Rule):
    def fill(self, words: memoryview) -> bool:
        return False

    def accept(self, token: int) -> bool:
        return False


class Broken(Rule):
    def fill(self, words: memoryview) -> bool:
        raise ValueError("no grammar")


class Empty(Rule):
    def fill(self, words: memoryview) -> bool:
        return True


def test_masks_rule_each_choice_alone(rigs: Rigs) -> None:
    rig = rigs()
    rig.add(0, rig.request(HELLO, 30))
    rig.add(1, rig.request(HELLO, 30, mask=lambda: Rule(b'{"a": 1}')))
    rig.add(2, rig.request(HELLO, 30, mask=lambda: Free(b""), n=2, sampling=SamplingParams(seed=1)))
    rig.drain()
    free = rigs()
    free.run(free.request(HELLO, 30))
    assert rig.tokens(0) == free.tokens(0)
    assert (rig.text(1), rig.end(1).reason) == ('{"a": 1}', "stop")
    assert rig.end(2, 1).reason == "length"


@pytest.mark.parametrize(("kind", "words"), [(Broken, "no grammar"), (Empty, "no token may follow")])
def test_a_broken_mask_fails_its_own_request(rigs: Rigs, kind: type[Rule], words: str) -> None:
    rig = rigs()
    rig.add(0, rig.request(HELLO, 8))
    rig.add(1, rig.request(HELLO, 8, mask=lambda: kind(b"x"), n=2))
    rig.drain()
    (failed,) = [event for event in rig.events[1] if isinstance(event, Failed)]
    assert words in failed.fault.message and not any(isinstance(event, Finished) for event in rig.events[1])
    assert len(rig.tokens(0)) == 8


def test_slots_prefer_the_longest_beginning_and_keep_what_is_worth_more() -> None:
    slots, text = SlotTable(3), list(range(100, 160))
    assert slots.take(text) == SlotAssignment(0)
    slots.computed(0, text)
    assert slots.take([*text[:30], 1, 2]) == SlotAssignment(1, 30, 0), "copied from a busy slot"
    slots.computed(1, [*text[:30], 1, 2])
    assert slots.take([5] * 9) == SlotAssignment(2)
    assert slots.take([1]) is None
    slots.release(0)
    slots.release(1)
    assert slots.take([*text, 9]) == SlotAssignment(0, 59), "continued in place, but for the last two"
    assert slots.take(text[: MIN_REUSED_TOKENS + 1]) == SlotAssignment(1), "too short to be worth it"


def test_one_stream_does_not_wander(rigs: Rigs) -> None:
    rig = rigs()
    for ticket in range(30):
        rig.run(rig.request([ticket] * 5, 2, sampling=GREEDY), ticket)
    assert rig.scheduler.counters.moves == 0


@pytest.mark.parametrize("layout", ["gqa", "concat"])
def test_a_cancelled_prompt_ends_within_its_piece(
    rigs: Rigs, layout: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Another thread asks for it while onnxruntime runs; what the slot held before is good for the next."""
    rig = rigs(layout=layout, slots=2, piece=16)
    prompt = HELLO * 4
    fresh = rigs(layout=layout)
    fresh.run(fresh.request(prompt, 8))
    running = rig.session.run_with_iobinding
    runs = 0

    def interrupted(binding: Any, options: Any = None) -> None:
        nonlocal runs
        runs += 1
        if runs == 3:
            rig.scheduler.interrupt(1)
            assert not options.terminate, "another request's"
            rig.scheduler.interrupt(0)
            assert options.terminate
        running(binding, options)

    monkeypatch.setattr(rig.session, "run_with_iobinding", interrupted)
    rig.add(0, rig.request(prompt, 8))
    for _ in range(3):
        rig.step()
    assert runs == 3 and rig.scheduler.counters.prompt_tokens == 32 and not rig.events[0]
    rig.cancel(0)
    assert rig.end(0).reason == "cancelled" and not rig.scheduler.has_work
    rig.run(rig.request(prompt, 8), 1)
    assert rig.tokens(1) == fresh.tokens()
    assert rig.end(1).usage.cached == (32 if layout == "gqa" else 0)
    assert capfd.readouterr().err == ""
