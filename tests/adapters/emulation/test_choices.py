"""`n` by one call for each choice."""

from __future__ import annotations

import pytest

from dragoman.adapters.emulation.choices import CHOICES
from dragoman.adapters.emulation.interface import StreamMerger
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import End, Output, expand

from .made import USAGE, chunk, finish, make_context, make_reply, merge_pieces, run, usage_chunk


def merger(n: int, **request: object) -> StreamMerger:
    assert CHOICES.merge is not None
    return CHOICES.merge(make_context(n=n, **request), n)


def answer(text: str, index: int = 0) -> dict[str, object]:
    return {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}


def test_each_call_asks_for_one_choice_with_a_seed_of_its_own() -> None:
    ctx = make_context(n=3, seed=40, stream=True)
    parts = CHOICES.split(ctx)
    assert [part.request["seed"] for part in parts] == [40, 41, 42]
    assert all("n" not in part.request and part.request["stream"] for part in parts)
    assert ctx.request["n"] == 3, "the client's own request stays"
    assert len({id(part.receipt) for part in parts}) == 3
    told = [(change.action, change.before, change.weight) for change in ctx.receipt.changes]
    assert told == [("emulated", ("n",), "form"), ("emulated", ("seed",), "form")]
    assert "3 calls" in str(ctx.receipt.header())


@pytest.mark.parametrize(("request_", "why"), [({"n": 9}, "at most 8"), ({"n": 2, "best_of": 3}, "best")])
def test_what_several_calls_cannot_make(request_: dict[str, int], why: str) -> None:
    assert why in str(CHOICES.find_obstacle(request_))
    assert CHOICES.find_obstacle({"n": 8, "best_of": 8}) is None


def test_whole_replies_become_the_choices_of_one_and_every_token_counts() -> None:
    ctx = make_context(n=3)
    replies = [make_reply(answer(text), id=text, usage=USAGE) for text in "abc"]
    joined = CHOICES.join(replies, ctx)
    said = [(choice["index"], choice["message"]["content"]) for choice in joined["choices"]]
    assert said == [(0, "a"), (1, "b"), (2, "c")]
    assert joined["id"] == "a"
    assert joined["usage"] == {"prompt_tokens": 21, "completion_tokens": 15, "total_tokens": 36}


def test_the_choices_of_several_prompts_are_those_of_each_prompt_in_turn() -> None:
    ctx = make_context(n=2, prompt=["x", "y"])
    replies = [
        make_reply(*({"index": i, "text": f"{prompt}{call}"} for i, prompt in enumerate("xy"))) for call in range(2)
    ]
    assert [choice["text"] for choice in CHOICES.join(replies, ctx)["choices"]] == ["x0", "x1", "y0", "y1"]


def test_a_usage_that_one_call_lacks_is_not_made_up() -> None:
    ctx = make_context(n=2)
    joined = CHOICES.join([make_reply(answer("a"), usage=USAGE), make_reply(answer("b"))], ctx)
    assert "usage" not in joined
    assert ctx.receipt.is_lost(("usage",))


def test_a_call_with_two_choices_fails() -> None:
    with pytest.raises(Fault, match="a choice 1"):
        CHOICES.join([make_reply(answer("a"), answer("b", 1)), make_reply(answer("c"))], make_context(n=2))
    made = merger(2).feed(0, [chunk({"content": "x"}), chunk({"content": "y"}, index=1), End()])
    assert isinstance(made[-1], Fault)
    assert merge_pieces(made) == {0: {"finish": None, "content": "x"}}


def test_streams_become_one_with_one_usage_and_one_end() -> None:
    merged = merger(2)
    made = merged.feed(1, [chunk({"role": "assistant", "content": "b1"}), run("b2", "b3")])
    made += merged.feed(0, [chunk({"role": "assistant", "content": "a1"}), run("a2"), finish(), usage_chunk(), End()])
    assert not any(isinstance(one, End) for one in made), "the other call is still under way"
    made += merged.feed(1, [run("b4"), finish("length"), usage_chunk(), End()])
    said = merge_pieces(made)
    assert said[0] == {"finish": "stop", "role": "assistant", "content": "a1a2"}
    assert said[1] == {"finish": "length", "role": "assistant", "content": "b1b2b3b4"}
    *_, last, end = expand(made)
    assert last.body["usage"] == {key: 2 * value for key, value in USAGE.items()}
    assert isinstance(end, End)


def test_all_chunks_have_the_same_id_and_runs_of_a_call_the_same_body() -> None:
    merged, first = merger(2), chunk({"content": "x"})
    first.body["id"] = "other"
    made = merged.feed(1, [first]) + merged.feed(0, [(piece := run("a")), piece])
    assert {one.body["id"] for one in made} == {"other"}
    assert made[1].body is made[2].body, "writers frame the body of a run once"


def test_a_cut_call_makes_the_whole_a_failure() -> None:
    merged, broken = merger(2), Fault("upstream_invalid_response", "cut")
    made: list[Output] = merged.feed(0, [chunk({"content": "x"}), finish(), End()])
    made += merged.feed(1, [chunk({"content": "y"}), broken])
    assert made[-1] is broken
    assert merged.feed(1, [End()]) == []
