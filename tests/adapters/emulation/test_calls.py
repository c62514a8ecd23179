"""Several emulations of one request: the tree of its calls."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.emulation.calls import EmulatedCalls
from dragoman.adapters.emulation.choices import CHOICES
from dragoman.adapters.emulation.interface import Emulation
from dragoman.adapters.emulation.stop_sequences import STOP_SEQUENCES
from dragoman.adapters.streams import End

from .made import USAGE, chunk, finish, make_context, make_reply, merge_pieces, usage_chunk


def split_prompts(ctx: Context) -> list[Context]:
    prompts = ctx.request["prompt"]
    if len(prompts) == 1:
        return [ctx]
    return [ctx._replace(request={**ctx.request, "prompt": [one]}, receipt=ctx.receipt.fork()) for one in prompts]


def join_prompts(replies: list[JsonObject], ctx: Context) -> JsonObject:
    for position, reply in enumerate(replies):
        for choice in reply["choices"]:
            choice["index"] += position
    return make_reply(*(choice for reply in replies for choice in reply["choices"]))


PROMPTS = Emulation(split_prompts, join_prompts)


def test_without_anything_to_do_there_is_one_call() -> None:
    ctx = make_context(prompt=["x"])
    calls = EmulatedCalls(ctx, [PROMPTS])
    assert calls.is_empty
    assert calls.parts == [ctx]


def test_every_choice_of_every_prompt_is_a_call() -> None:
    calls = EmulatedCalls(make_context(prompt=["x", "y"], n=3), [CHOICES, PROMPTS])
    assert [part.request["prompt"] for part in calls.parts] == [["x"], ["y"]] * 3
    assert not calls.can_stream, "prompts are not streamed"
    replies = [make_reply({"index": 0, "text": f"{prompt}{call}"}) for call in range(3) for prompt in ("x", "y")]
    said = [choice["text"] for choice in calls.join(replies)["choices"]]
    assert said == ["x0", "x1", "x2", "y0", "y1", "y2"]


def test_each_call_is_cut_at_its_own_stop_string() -> None:
    ctx = make_context(n=2, stop="#", stream=True, stream_options={"include_usage": True})
    calls = EmulatedCalls(ctx, [CHOICES, STOP_SEQUENCES])
    assert calls.can_stream
    assert all(part.request.keys().isdisjoint({"n", "stop"}) for part in calls.parts)
    made = calls.feed(0, [chunk({"content": "a#b"})])
    assert calls.has_ended(0), "the provider's call can be cancelled"
    assert not calls.has_ended(1)
    made += calls.feed(1, [chunk({"content": "c"}), finish("length"), usage_chunk(), End()])
    assert merge_pieces(made) == {0: {"finish": "stop", "content": "a"}, 1: {"finish": "length", "content": "c"}}
    usage = made[-2].body["usage"]
    assert usage["total_tokens"] > USAGE["total_tokens"]
    assert isinstance(made[-1], End)


def test_the_receipts_of_all_requests_become_one() -> None:
    ctx = make_context(n=2, stop="#")
    calls = EmulatedCalls(ctx, [CHOICES, STOP_SEQUENCES])
    for part in calls.parts:
        part.receipt.violations = 1
        part.receipt.record_drop(("seed",), "the target lacks it")
    calls.absorb_receipts()
    calls.absorb_receipts()
    assert [change.before for change in ctx.receipt.changes] == [("n",), ("stop",), ("seed",)]
    assert ctx.receipt.violations == 2
