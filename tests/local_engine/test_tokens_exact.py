"""Token for token: against transformers (committed, or live), and against a plain loop while others come and go."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from engine_models import NEW_TOKENS, PROMPTS, SEED, SPECS
from engine_rig import Folders, Rig, Rigs, plain

from dragoman.local_engine.generation import Failed, SamplingParams

CASES = [("llama", "gqa"), ("qwen2", "gqa"), ("qwen3", "gqa"), ("llama", "concat"), ("qwen3", "concat")]


def golden(name: str) -> list[list[int]]:
    found = json.loads((Path(__file__).parent / "golden" / f"{name}.json").read_text("utf-8"))
    assert found["seed"] == SEED
    tokens: list[list[int]] = found["tokens"]
    return tokens


@pytest.mark.parametrize(("name", "layout"), CASES)
@pytest.mark.parametrize("piece", [3, 32, 256])
def test_greedy_tokens_are_those_of_transformers(rigs: Rigs, name: str, layout: str, piece: int) -> None:
    rig = rigs(name, "fp32", layout, piece=piece)
    for ticket, prompt in enumerate(PROMPTS):
        rig.add(ticket, rig.request(prompt, NEW_TOKENS))
    rig.drain()
    assert [rig.tokens(ticket) for ticket in range(len(PROMPTS))] == golden(name)


@pytest.mark.live
@pytest.mark.parametrize("name", SPECS)
def test_greedy_tokens_are_those_of_transformers_now(rigs: Rigs, name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("transformers", reason="needs transformers")
    from make_golden import continued, reference

    model = reference(name, tmp_path)
    rig = rigs(name)
    source = random.Random(5)
    for ticket in range(20):
        prompt = [source.randrange(256) for _ in range(source.randint(1, 90))]
        tokens, gap = continued(model, prompt, NEW_TOKENS)
        rig.run(rig.request(prompt, NEW_TOKENS), ticket)
        assert rig.tokens(ticket) == tokens or gap < 1e-3, (prompt, gap)


def prompts(count: int, seed: int) -> list[list[int]]:
    """Prompts of 1 to 80 tokens, half of them with a beginning that others have too."""
    source = random.Random(seed)
    beginnings = [[source.randrange(256) for _ in range(length)] for length in (12, 40)]
    made = []
    for number in range(count):
        begin = beginnings[number % 4] if number % 4 < 2 else []
        made.append(begin + [source.randrange(256) for _ in range(source.randint(1, 40))])
    return made


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_200_requests_that_join_leave_and_cancel_at_random(folders: Folders, rigs: Rigs, name: str) -> None:
    rig, source = rigs(name, slots=7), random.Random(3)
    asked = [(prompt, source.randint(1, 40)) for prompt in prompts(200, 1)]
    cancelled, waiting = set(), list(range(200))
    while waiting or rig.scheduler.has_work:
        for _ in range(source.choice((0, 0, 1, 2, 5))):
            if waiting:
                ticket = waiting.pop(0)
                rig.add(ticket, rig.request(*asked[ticket]))
        running = sorted(rig.scheduler.list_tickets())
        if running and source.random() < 0.15:
            ticket = source.choice(running)
            before = rig.scheduler.running_count
            rig.cancel(ticket)
            cancelled.add(ticket)
            assert rig.scheduler.running_count in (before, before - 1)
        rig.step()
    assert len(cancelled) > 20 and rig.scheduler.counters.moves and rig.scheduler.counters.cached_tokens
    for ticket, (prompt, count) in enumerate(asked):
        tokens, alone = rig.tokens(ticket), plain(folders(name), prompt, count)
        assert tokens == (alone[: len(tokens)] if ticket in cancelled else alone), ticket
        assert rig.end(ticket).reason == ("cancelled" if ticket in cancelled else "length")


@pytest.mark.parametrize("precision", ["fp32", "int8", "int4"])
def test_a_seed_gives_the_same_tokens_alone_and_among_15_others(rigs: Rigs, precision: str) -> None:
    given = SamplingParams(temperature=0.9, top_p=0.95, top_k=50, min_p=0.01, presence_penalty=0.3, seed=42, logprobs=3)
    prompt = list(b"the same question, asked in company")
    alone = rigs("qwen2", precision)
    first = alone.run(alone.request(prompt, 60, sampling=given))
    company = rigs("qwen2", precision)
    for ticket, other in enumerate(prompts(15, 2)):
        company.add(ticket + 1, company.request(other, 20 + ticket, sampling=SamplingParams(seed=ticket)))
        company.step()
    assert _all_but_usage(company.run(company.request(prompt, 60, sampling=given))) == _all_but_usage(first)


def _all_but_usage(events: list[Any]) -> list[Any]:
    assert not any(isinstance(event, Failed) for event in events)
    return events[:-1]


@pytest.mark.parametrize("precision", ["fp32", "int8", "int4"])
def test_logits_hold_to_the_last_bit_however_prompts_are_cut_and_rows_are_batched(rigs: Rigs, precision: str) -> None:
    """What the promise about seeds rests on: kv.py."""
    rig = rigs("qwen3", precision)
    prompt = list(range(3, 90))
    whole = rig.prefill(0, 0, prompt).tobytes()
    for piece in (2, 3, 29, 64):
        start = 0
        while start < len(prompt):
            end = len(prompt) if len(prompt) - start - piece < 2 else start + piece
            logits = rig.prefill(1, start, prompt[start:end])
            start = end
        assert logits.tobytes() == whole, piece
    for row in range(2, 16):
        rig.prefill(row, 0, prompt[: row * 4])
    alone = rig.decode([0], [7]).tobytes()
    rig.prefill(0, 0, prompt)
    assert rig.decode(list(range(16)), [7] * 16)[0].tobytes() == alone
    rig.prefill(0, 0, prompt)
    assert rig.decode([0, 3, 9], [7] * 3)[0].tobytes() == alone


def test_choices_of_one_request_differ_by_their_index_only(rigs: Rigs) -> None:
    rig: Rig = rigs("llama")
    asked = rig.request(list(b"one prompt, several answers"), 12, n=3, sampling=SamplingParams(temperature=1.0, seed=5))
    rig.run(asked)
    texts = [rig.tokens(0, index) for index in range(3)]
    assert len({tuple(text) for text in texts}) == 3
    again = rigs("llama")
    again.run(asked)
    assert [again.tokens(0, index) for index in range(3)] == texts
    assert rig.end(0, 1).usage.cached == len(asked.prompt) - 2
