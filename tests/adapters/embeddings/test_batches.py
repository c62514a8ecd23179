from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.embeddings.batches import MOST_PARTS, join, split
from dragoman.adapters.faults import Fault
from dragoman.contract.json_types import JsonObject, JsonValue

from .conftest import MakeContext

INPUTS = st.one_of(st.lists(st.text(), min_size=1, max_size=40), st.lists(st.lists(st.integers(0, 9)), min_size=1))


def whole(given: JsonValue, **more: JsonValue) -> Context:
    request = {"model": "m", "input": given, **more}
    return Context("actual", Call("POST", "/", request), Receipt(), Target("m", policy=Policy()), request)


def answer(ctx: Context) -> JsonObject:
    """What a provider makes of a part: each vector tells its input's length."""
    data = [
        {"object": "embedding", "index": i, "embedding": [float(len(one))]}
        for i, one in enumerate(ctx.request["input"])
    ]
    return {"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": len(data), "total_tokens": 7}}


@given(INPUTS, st.integers(1, 50))
def test_parts_are_the_whole(given_: list[JsonValue], most: int) -> None:
    ctx = whole(given_, user="u")
    parts = split(ctx, most)
    assert [one for part in parts for one in part.request["input"]] == given_
    assert all(0 < len(part.request["input"]) <= most for part in parts)
    assert all({**part.request, "input": given_} == ctx.request for part in parts)
    places = [part.receipt.unmap(("input", i, 0)) for part in parts for i in range(len(part.request["input"]))]
    assert places == [("input", i, 0) for i in range(len(given_))]
    assert ctx.receipt.unmap(("input", 0)) == ("input", 0)


@given(INPUTS, st.integers(1, 50))
def test_splitting_and_joining_changes_nothing(given_: list[JsonValue], most: int) -> None:
    ctx = whole(given_)
    parts = split(ctx, most)
    made = join([answer(part) for part in parts], ctx)
    one = answer(ctx)
    assert made["data"] == one["data"]
    assert made["usage"] == {"prompt_tokens": len(given_), "total_tokens": 7 * len(parts)}
    assert {key: made[key] for key in ("object", "model")} == {"object": "list", "model": "m"}


def test_a_request_becomes_so_many_calls_and_no_more() -> None:
    assert len(split(whole(["a"] * MOST_PARTS * 3), 3)) == MOST_PARTS
    with pytest.raises(Fault, match=r"769 items, .* takes 3 in one call: send at most 768") as caught:
        split(whole(["a"] * (MOST_PARTS * 3 + 1)), 3)
    assert (caught.value.status, caught.value.param) == (400, "input")
    assert caught.value.code == "array_above_max_length"


@pytest.mark.parametrize(("given", "most"), [("hello", 1), ([1, 2, 3], 1), (["a"], 1), (["a", "b"], None)])
def test_what_is_not_split(given: JsonValue, most: int | None) -> None:
    ctx = whole(given)
    assert split(ctx, most) == [ctx]


def test_parts_of_different_lengths_are_a_fault() -> None:
    ctx = whole(["a", "b", "c"])
    replies = [answer(part) for part in split(ctx, 2)]
    replies[1]["data"][0]["embedding"].append(1.0)
    with pytest.raises(Fault, match="different lengths") as caught:
        join(replies, ctx)
    assert (caught.value.status, caught.value.path) == (502, ("input", 2))


def test_other_counts_are_added_up_too() -> None:
    ctx = whole(["a", "b"])
    replies = [answer(part) for part in split(ctx, 1)]
    for reply in replies:
        reply["usage"] |= {"cached_tokens": 2, "prompt_tokens_details": {"audio_tokens": 0}}
    usage = join(replies, ctx)["usage"]
    assert usage["cached_tokens"] == 4
    assert usage["prompt_tokens_details"] == {"audio_tokens": 0}


@pytest.mark.parametrize(
    ("dialect", "profile", "limits", "parts"),
    [
        ("openai", "actual", {}, 1),
        ("openai", "actual", {"inputs": 1000}, 3),
        ("databricks", "actual", {}, 14),
        ("databricks", "actual", {"inputs": 4000}, 14),
        ("databricks", "actual", {"inputs": 100}, 21),
        ("databricks", "documented", {}, 1),
        ("azure", "actual", {}, 1),
        ("azure", "actual", {"inputs": 96}, 22),
    ],
)
def test_limits(context: MakeContext, dialect: str, profile: str, limits: dict[str, int], parts: int) -> None:
    batching = dialects[dialect].called["embeddings"].batching
    assert batching is not None
    ctx = context(profile, {"model": "m", "input": ["x"] * 2048}, limits=limits)
    assert len(batching.split(ctx)) == parts
    more = context(profile, {"model": "m", "input": ["x"] * 2049}, limits=limits)
    assert len(batching.split(more)) == parts + (dialect == "openai" and not limits)
