"""Exact tokens: those of transformers (committed or live), and those of each request alone while others run."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from scheduler_rig import Folders, SchedulerRigs, generate_alone
from tiny_models import NEW_TOKENS, PROMPTS, SEED, SPECS

from dragoman.local_engine.export.decoder_graph import Layout
from dragoman.local_engine.export.linear import Precision
from dragoman.local_engine.generation import Event, Failed, SamplingParams

CASES: list[tuple[str, Layout]] = [
    ("llama", "gqa"),
    ("qwen2", "gqa"),
    ("qwen3", "gqa"),
    ("llama", "concat"),
    ("qwen3", "concat"),
]


def load_golden(name: str) -> list[list[int]]:
    found = json.loads((Path(__file__).parent / "golden" / f"{name}.json").read_text("utf-8"))
    assert found["seed"] == SEED
    tokens: list[list[int]] = found["tokens"]
    return tokens


@pytest.mark.parametrize(("name", "layout"), CASES)
@pytest.mark.parametrize("prefill_chunk", [3, 32, 256])
def test_greedy_tokens_are_the_golden_tokens_of_transformers(
    rigs: SchedulerRigs, name: str, layout: Layout, prefill_chunk: int
) -> None:
    rig = rigs(name, "fp32", layout, prefill_chunk=prefill_chunk)
    for ticket, prompt in enumerate(PROMPTS):
        rig.add(ticket, rig.request(prompt, NEW_TOKENS))
    rig.drain()
    assert [rig.tokens(ticket) for ticket in range(len(PROMPTS))] == load_golden(name)


@pytest.mark.live
@pytest.mark.parametrize("name", SPECS)
def test_greedy_tokens_equal_those_of_the_installed_transformers(
    rigs: SchedulerRigs, name: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("transformers", reason="needs transformers")
    from make_golden import generate_greedily, load_reference

    model = load_reference(name, tmp_path)
    rig = rigs(name)
    source = random.Random(5)
    for ticket in range(20):
        prompt = [source.randrange(256) for _ in range(source.randint(1, 90))]
        tokens, gap = generate_greedily(model, prompt, NEW_TOKENS)
        rig.run(rig.request(prompt, NEW_TOKENS), ticket)
        assert rig.tokens(ticket) == tokens or gap < 1e-3, (prompt, gap)


def random_prompts(count: int, seed: int) -> list[list[int]]:
    """Prompts of 1 to 80 tokens; half of them share a prefix with others."""
    source = random.Random(seed)
    prefixes = [[source.randrange(256) for _ in range(length)] for length in (12, 40)]
    prompts = []
    for number in range(count):
        prefix = prefixes[number % 4] if number % 4 < 2 else []
        prompts.append(prefix + [source.randrange(256) for _ in range(source.randint(1, 40))])
    return prompts


@pytest.mark.parametrize(
    ("name", "size"),
    [("llama", 100), *(pytest.param(name, 200, marks=pytest.mark.heavy) for name in ("llama", "qwen3"))],
)
def test_requests_at_random_times_get_the_tokens_of_each_alone(
    folders: Folders, rigs: SchedulerRigs, name: str, size: int
) -> None:
    rig, source = rigs(name, slots=7), random.Random(3)
    cases = [(prompt, source.randint(1, 40)) for prompt in random_prompts(size, 1)]
    cancelled, waiting = set(), list(range(size))
    while waiting or rig.scheduler.has_work:
        for _ in range(source.choice((0, 0, 1, 2, 5))):
            if waiting:
                ticket = waiting.pop(0)
                rig.add(ticket, rig.request(*cases[ticket]))
        running = sorted(rig.scheduler.list_tickets())
        if running and source.random() < 0.15:
            ticket = source.choice(running)
            before = rig.scheduler.running_count
            rig.cancel(ticket)
            cancelled.add(ticket)
            assert rig.scheduler.running_count in (before, before - 1)
        rig.step()
    assert len(cancelled) > size / 10 and rig.scheduler.counters.moves and rig.scheduler.counters.cached_tokens
    for ticket, (prompt, count) in enumerate(cases):
        tokens, alone = rig.tokens(ticket), generate_alone(folders(name), prompt, count)
        assert tokens == (alone[: len(tokens)] if ticket in cancelled else alone), ticket
        assert rig.end(ticket).reason == ("cancelled" if ticket in cancelled else "length")


@pytest.mark.parametrize("precision", ["fp32", "int8", "int4"])
def test_a_seed_gives_the_same_tokens_alone_and_in_a_batch_of_16(rigs: SchedulerRigs, precision: Precision) -> None:
    given = SamplingParams(temperature=0.9, top_p=0.95, top_k=50, min_p=0.01, presence_penalty=0.3, seed=42, logprobs=3)
    prompt = list(b"the same question, asked in company")
    alone = rigs("qwen2", precision)
    first = alone.run(alone.request(prompt, 60, sampling=given))
    batch = rigs("qwen2", precision)
    for ticket, other in enumerate(random_prompts(15, 2)):
        batch.add(ticket + 1, batch.request(other, 20 + ticket, sampling=SamplingParams(seed=ticket)))
        batch.step()
    assert _without_end(batch.run(batch.request(prompt, 60, sampling=given))) == _without_end(first)


def _without_end(events: list[Event]) -> list[Event]:
    assert not any(isinstance(event, Failed) for event in events)
    return events[:-1]


@pytest.mark.parametrize("precision", ["fp32", "int8", "int4"])
def test_logits_are_bitwise_independent_of_chunks_and_batches(rigs: SchedulerRigs, precision: Precision) -> None:
    """The guarantee about seeds depends on this (kv_cache.py)."""
    rig = rigs("qwen3", precision)
    prompt = list(range(3, 90))
    whole = rig.prefill(0, 0, prompt).tobytes()
    for chunk in (2, 3, 29, 64):
        start = 0
        while start < len(prompt):
            end = len(prompt) if len(prompt) - start - chunk < 2 else start + chunk
            logits = rig.prefill(1, start, prompt[start:end])
            start = end
        assert logits.tobytes() == whole, chunk
    for row in range(2, 16):
        rig.prefill(row, 0, prompt[: row * 4])
    alone = rig.decode([0], [7]).tobytes()
    rig.prefill(0, 0, prompt)
    assert rig.decode(list(range(16)), [7] * 16)[0].tobytes() == alone
    rig.prefill(0, 0, prompt)
    assert rig.decode([0, 3, 9], [7] * 3)[0].tobytes() == alone


def test_choices_with_a_seed_differ_and_are_reproducible(rigs: SchedulerRigs) -> None:
    rig = rigs("llama")
    request = rig.request(
        list(b"one prompt, several answers"), 12, n=3, sampling=SamplingParams(temperature=1.0, seed=5)
    )
    rig.run(request)
    texts = [rig.tokens(0, index) for index in range(3)]
    assert len({tuple(text) for text in texts}) == 3
    again = rigs("llama")
    again.run(request)
    assert [again.tokens(0, index) for index in range(3)] == texts
    assert rig.end(0, 1).usage.cached == len(request.prompt) - 2
