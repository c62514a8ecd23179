"""The scheduler: ends of choices, the order of events, and the isolation of requests from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler_rig import GREEDY, SchedulerRigs

from dragoman.local_engine.batching.scheduler import next_prefill_size
from dragoman.local_engine.export.decoder_graph import Layout
from dragoman.local_engine.generation import Delta, Failed, Finished, SamplingParams

if TYPE_CHECKING:
    from onnxruntime import IOBinding, RunOptions

HELLO = list(b"hello there, how are you")


@given(st.integers(2, 5000), st.integers(3, 600))
def test_prefill_chunks_are_never_single_tokens(remaining: int, prefill_chunk: int) -> None:
    while remaining:
        size = next_prefill_size(remaining, prefill_chunk)
        assert 2 <= size <= prefill_chunk
        remaining -= size
    assert next_prefill_size(1, prefill_chunk) == 1


def test_an_end_token_ends_the_choice_and_is_not_reported(rigs: SchedulerRigs) -> None:
    rig = rigs()
    rig.run(rig.request(HELLO, 20))
    tokens = rig.tokens()
    end = tokens[6]
    first = tokens.index(end)
    rig.run(rig.request(HELLO, 20, stop_ids=frozenset([end])), 1)
    assert rig.tokens(1) == tokens[:first]
    assert (rig.end(1).reason, rig.end(1).stop, rig.end(1).usage.completion) == ("stop", end, first + 1)


def test_the_models_end_token_ends_the_choice_unless_ignored(rigs: SchedulerRigs) -> None:
    rig = rigs()
    bias = SamplingParams(temperature=0, logit_bias={256: 100.0})
    rig.run(rig.request(HELLO, 5, sampling=bias, ignore_eos=False))
    rig.run(rig.request(HELLO, 5, sampling=bias), 1)
    assert (rig.end().reason, rig.tokens()) == ("stop", [])
    assert (rig.end(1).reason, rig.tokens(1)) == ("length", [256] * 5)


def force(*tokens: int) -> SamplingParams:
    """Greedy sampling of exactly these tokens, once each, in this order."""
    return SamplingParams(
        temperature=0, presence_penalty=900.0, logit_bias={token: 400.0 - 40 * i for i, token in enumerate(tokens)}
    )


def test_a_stop_sequence_is_held_back_and_never_reported(rigs: SchedulerRigs) -> None:
    rig = rigs()
    rig.add(0, rig.request(HELLO, 9, sampling=force(*b"xySTOP!"), stop=("STOP",)))
    seen = []
    while rig.scheduler.has_work:
        rig.step()
        seen.append(rig.text())
    assert seen == ["xy"] * len(seen), "S, ST and STO are held back"
    assert (rig.tokens(), rig.end().reason, rig.end().stop) == (list(b"xy"), "stop", "STOP")
    assert rig.end().usage.completion == 6


def test_held_back_text_is_reported_at_the_end_without_a_stop_sequence(rigs: SchedulerRigs) -> None:
    rig = rigs()
    rig.run(rig.request(HELLO, 4, sampling=force(*b"xyST"), stop=("STOP",)))
    assert (rig.text(), rig.tokens(), rig.end().reason) == ("xyST", list(b"xyST"), "length")


def test_log_probabilities_are_reported_with_their_tokens(rigs: SchedulerRigs) -> None:
    rig = rigs()
    rig.run(rig.request(HELLO, 24, sampling=SamplingParams(temperature=0, logprobs=1)))
    deltas = [event for event in rig.events[0] if isinstance(event, Delta)]
    for delta in deltas:
        assert [entry.token for entry in delta.logprobs] == list(delta.tokens)
        assert all(entry.top[0] == (entry.token, entry.logprob) for entry in delta.logprobs)
    assert len(rig.tokens()) == 24


def test_a_full_context_ends_the_choice(rigs: SchedulerRigs) -> None:
    rig = rigs(length=40)
    for ticket, size in enumerate((39, 38, 24)):
        rig.add(ticket, rig.request([ticket * 7 + i for i in range(size)], 100))
    rig.drain()
    assert [len(rig.tokens(ticket)) for ticket in range(3)] == [1, 2, 16]
    assert {rig.end(ticket).reason for ticket in range(3)} == {"length"}


@pytest.mark.parametrize("layout", ["gqa", "concat"])
def test_a_cancelled_slot_is_free_before_the_next_step(rigs: SchedulerRigs, layout: Layout) -> None:
    rig = rigs("llama", "fp32", layout, slots=1)
    rig.add(0, rig.request(HELLO, 100))
    rig.add(1, rig.request(HELLO, 3))
    rig.step()
    assert (rig.scheduler.running_count, len(rig.scheduler.waiting)) == (1, 1)
    rig.cancel(0)
    assert rig.end(0).reason == "cancelled" and rig.scheduler.running_count == 0
    rig.step()
    assert rig.scheduler.running_count == 1 and not rig.scheduler.waiting


def test_a_long_prompt_does_not_block_other_requests(rigs: SchedulerRigs) -> None:
    rig = rigs(prefill_chunk=16)
    rig.add(0, rig.request(HELLO, 50))
    rig.step()
    rig.step()
    before = len(rig.tokens(0))
    rig.add(1, rig.request(list(range(100)), 5))
    steps = 0
    while not rig.events[1]:
        rig.step()
        steps += 1
    assert steps == 7, "100 tokens in chunks of 16"
    reported = sum(len(event.tokens) for event in rig.events[0] if isinstance(event, Delta))
    assert reported >= before + steps - 4


def test_a_common_prefix_of_prompts_is_reused(rigs: SchedulerRigs) -> None:
    rig = rigs()
    long = [i % 200 for i in range(90)]
    rig.run(rig.request(long, 3))
    rig.run(rig.request([*long[:60], 1, 2, 3], 3), 1)
    rig.run(rig.request(long, 3), 2)
    assert [rig.end(ticket).usage.cached for ticket in range(3)] == [0, 60, 60]
    assert rig.tokens(0) == rig.tokens(2)


class TextMask:
    """A TokenMask that allows exactly one text."""

    def __init__(self, text: bytes) -> None:
        self.remaining = list(text)

    def fill(self, words: memoryview) -> bool:
        token = self.remaining[0]
        words[token // 32] |= 1 << (token % 32)
        return True

    def accept(self, token: int) -> bool:
        assert token == self.remaining.pop(0)
        return not self.remaining


class FreeMask(TextMask):
    """A TokenMask that allows every token."""

    def fill(self, words: memoryview) -> bool:
        return False

    def accept(self, token: int) -> bool:
        return False


class FailingMask(TextMask):
    """A TokenMask that raises an error."""

    def fill(self, words: memoryview) -> bool:
        raise ValueError("no grammar")


class EmptyMask(TextMask):
    """A TokenMask that allows no token."""

    def fill(self, words: memoryview) -> bool:
        return True


def test_a_mask_applies_to_its_own_choice_only(rigs: SchedulerRigs) -> None:
    rig = rigs()
    rig.add(0, rig.request(HELLO, 30))
    rig.add(1, rig.request(HELLO, 30, mask=lambda: TextMask(b'{"a": 1}')))
    rig.add(2, rig.request(HELLO, 30, mask=lambda: FreeMask(b""), n=2, sampling=SamplingParams(seed=1)))
    rig.drain()
    free = rigs()
    free.run(free.request(HELLO, 30))
    assert rig.tokens(0) == free.tokens(0)
    assert (rig.text(1), rig.end(1).reason) == ('{"a": 1}', "stop")
    assert rig.end(2, 1).reason == "length"


@pytest.mark.parametrize(("mask", "message"), [(FailingMask, "no grammar"), (EmptyMask, "no token is allowed")])
def test_a_failing_mask_fails_its_own_request_only(rigs: SchedulerRigs, mask: type[TextMask], message: str) -> None:
    rig = rigs()
    rig.add(0, rig.request(HELLO, 8))
    rig.add(1, rig.request(HELLO, 8, mask=lambda: mask(b"x"), n=2))
    rig.drain()
    (failed,) = [event for event in rig.events[1] if isinstance(event, Failed)]
    assert message in failed.fault.message and not any(isinstance(event, Finished) for event in rig.events[1])
    assert len(rig.tokens(0)) == 8


def test_successive_single_requests_move_no_rows(rigs: SchedulerRigs) -> None:
    rig = rigs()
    for ticket in range(30):
        rig.run(rig.request([ticket] * 5, 2, sampling=GREEDY), ticket)
    assert rig.scheduler.counters.moves == 0


@pytest.mark.parametrize("layout", ["gqa", "concat"])
def test_cancelling_interrupts_the_running_prefill_chunk(
    rigs: SchedulerRigs, layout: Layout, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The interrupt arrives while onnxruntime runs. The chunks before it stay valid for the next request."""
    rig = rigs(layout=layout, slots=2, prefill_chunk=16)
    prompt = HELLO * 4
    fresh = rigs(layout=layout)
    fresh.run(fresh.request(prompt, 8))
    original = rig.session.run_with_iobinding
    runs = 0

    def interrupt_third_run(binding: IOBinding, options: RunOptions) -> None:
        nonlocal runs
        runs += 1
        if runs == 3:
            rig.scheduler.interrupt(1)
            assert not options.terminate, "interrupted by another request"
            rig.scheduler.interrupt(0)
            assert options.terminate
        original(binding, options)

    monkeypatch.setattr(rig.session, "run_with_iobinding", interrupt_third_run)
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
