"""`stop` by cutting: whole replies and streams, chat and completions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.emulation.interface import StreamMerger
from dragoman.adapters.emulation.stop_sequences import LONGEST_STOP, MOST_STOPS, STOP_SEQUENCES
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output

from .made import USAGE, chunk, finish, make_context, make_reply, merge_pieces, run, usage_chunk

CALL = {"id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": "#"}'}}


def cut(choice: JsonObject, **request: Any) -> JsonObject:
    ctx = make_context(**{"stop": "#", **request})
    cut: JsonObject = STOP_SEQUENCES.join([make_reply(choice, usage=USAGE)], ctx)["choices"][0]
    return cut


def cutter(ctx: Context | None = None) -> StreamMerger:
    assert STOP_SEQUENCES.merge is not None
    return STOP_SEQUENCES.merge(ctx or make_context(stop="END"), 1)


def answer(**message: Any) -> JsonObject:
    return {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "length"}


def test_the_field_is_taken_out_and_the_receipt_says_so() -> None:
    ctx = make_context(stop=["#"], include_stop_str_in_output=True, top_p=1)
    (part,) = STOP_SEQUENCES.split(ctx)
    assert part.request.keys() == {"model", "messages", "top_p"}
    assert [(change.action, change.before) for change in ctx.receipt.changes] == [
        ("emulated", ("stop",)),
        ("emulated", ("include_stop_str_in_output",)),
    ]


# Whole replies


def test_a_text_ends_before_the_stop_string() -> None:
    said = cut(answer(content="one # two", refusal=None))
    assert said == {"index": 0, "message": {"role": "assistant", "content": "one ", "refusal": None}} | {
        "finish_reason": "stop",
        "stop_sequence": "#",
    }


def test_a_text_without_a_stop_string_stays_as_it_is() -> None:
    choice = answer(content="one", tool_calls=[CALL], reasoning_content="a # b")
    assert cut(choice) is choice


def test_a_tool_call_after_a_stop_string_was_never_made() -> None:
    assert "tool_calls" not in cut(answer(content="one # two", tool_calls=[CALL]))["message"]


def test_the_stop_string_is_kept_if_the_client_wants_it() -> None:
    assert cut(answer(content="one # two"), include_stop_str_in_output=True)["message"]["content"] == "one #"


def test_log_probabilities_end_with_the_text() -> None:
    tokens = [{"token": token, "logprob": -1.0} for token in ("one", " #", " two")]
    said = cut({**answer(content="one # two"), "logprobs": {"content": tokens, "refusal": None}})
    assert said["message"]["content"] == "one "
    assert [one["token"] for one in said["logprobs"]["content"]] == ["one"]


def test_completions_are_cut_too() -> None:
    logprobs = {"tokens": ["a", "#", "b"], "token_logprobs": [1, 2, 3], "text_offset": [0, 1, 2], "top_logprobs": None}
    choice = {"index": 0, "text": "a#b", "logprobs": logprobs, "finish_reason": "length"}
    said = cut(choice, prompt="x")
    assert said == {"index": 0, "text": "a", "finish_reason": "stop"} | {
        "logprobs": {"tokens": ["a"], "token_logprobs": [1], "text_offset": [0], "top_logprobs": None}
    }
    assert STOP_SEQUENCES.find_obstacle({"prompt": "x#", "stop": "#", "echo": True}) is not None


# Streams


def test_text_is_held_back_no_longer_than_it_may_be_a_stop_string() -> None:
    stream = cutter()
    assert merge_pieces(stream.feed(0, [run("one E", "N")])) == {0: {"finish": None, "content": "one "}}
    assert merge_pieces(stream.feed(0, [run("T"), chunk({"content": " two E"})])) == {
        0: {"finish": None, "content": "ENT two "}
    }
    made = stream.feed(0, [finish("length"), usage_chunk(), End()])
    assert merge_pieces(made) == {0: {"content": "E", "finish": "length"}}


def test_what_needs_no_change_is_passed_on_as_it_came() -> None:
    given: list[Output] = [chunk({"role": "assistant", "content": ""}), run("one", " two"), finish(), End()]
    made = cutter().feed(0, given)
    assert all(one is other for one, other in zip(made, given, strict=True))


def test_a_stop_string_ends_the_stream_before_the_provider_does() -> None:
    ctx = make_context(stop="END", stream_options={"include_usage": True})
    stream = cutter(ctx)
    made = stream.feed(0, [run("one E"), run("ND two"), chunk({"content": "three"})])
    assert merge_pieces(made) == {0: {"finish": "stop", "content": "one "}}
    assert isinstance(made[-1], End)
    assert isinstance(made[-2], Chunk)
    usage = made[-2].body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 2
    assert ctx.receipt.is_lost(("usage",)), "an estimate is marked"
    assert stream.feed(0, [run("more"), End()]) == []


def test_nobody_who_did_not_ask_gets_a_usage() -> None:
    made = cutter().feed(0, [run("one END")])
    assert [type(one) for one in made] == [DeltaRun, Chunk, End]
    assert isinstance(end := made[-1], End)
    assert end.usage is not None, "budgets count it"
    assert end.usage["total_tokens"] == end.usage["prompt_tokens"] + end.usage["completion_tokens"] > 1


def test_a_stream_goes_on_until_its_last_choice_has_ended() -> None:
    stream = cutter(make_context(stop="END", n=2))
    made = stream.feed(0, [run("aEND"), run("b", index=1), run("no", index=0), run("bEN", index=1)])
    assert not isinstance(made[-1], End)
    made += stream.feed(0, [finish("length", index=1)])
    assert merge_pieces(made) == {0: {"finish": "stop", "content": "a"}, 1: {"finish": "length", "content": "bbEN"}}
    assert isinstance(made[-1], End)


def test_reasoning_and_arguments_are_not_cut() -> None:
    call = {"index": 0, **CALL}
    made = cutter(make_context(stop="#")).feed(
        0,
        [
            run("a # b", key="reasoning_content"),
            chunk({"content": "x"}),
            chunk({"tool_calls": [call]}),
            finish(),
            End(),
        ],
    )
    assert merge_pieces(made)[0] == {
        "finish": "stop",
        "reasoning_content": "a # b",
        "content": "x",
        "tool_calls": [call],
    }


def test_held_text_comes_before_a_call_and_a_stop_string_drops_it() -> None:
    call = {"index": 0, **CALL}
    made = cutter().feed(0, [run("E"), chunk({"tool_calls": [call]}), finish("tool_calls"), End()])
    keys = [key for one in made if isinstance(one, Chunk) for key in one.body["choices"][0]["delta"]]
    assert keys == ["content", "tool_calls"]
    made = cutter().feed(0, [chunk({"content": "xEND", "tool_calls": [call]})])
    assert merge_pieces(made) == {0: {"finish": "stop", "content": "x"}}


def test_a_broken_stream_stays_broken_and_loses_no_text() -> None:
    broken = Fault("upstream_invalid_response", "cut")
    made = cutter().feed(0, [run("one E"), broken])
    assert merge_pieces(made) == {0: {"finish": None, "content": "one E"}}
    assert made[-1] is broken


@given(
    st.lists(st.text("abE.", max_size=5), min_size=1, max_size=8),
    st.lists(st.sampled_from(["E", "ab", "b.", "Ea", "..."]), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.booleans(),
)
def test_a_stream_says_what_the_whole_reply_says(
    pieces: list[str], stop: list[str], coalesced: list[bool], ends_together: bool
) -> None:
    whole = cut(answer(content="".join(pieces)), stop=stop)
    outputs: list[Output] = [
        run(piece) if is_run else chunk({"content": piece}) for piece, is_run in zip(pieces, coalesced, strict=False)
    ]
    outputs += [chunk({"content": ""}, finish="length") if ends_together else finish("length"), End()]
    made = cutter(make_context(stop=stop)).feed(0, outputs)
    said = merge_pieces(made)[0]
    assert (said.get("content", ""), said["finish"]) == (whole["message"]["content"], whole["finish_reason"])
    assert isinstance(made[-1], End)


@given(st.lists(st.sampled_from(["a", "b", "E", "EN", "D", "END"]), min_size=1, max_size=8))
def test_each_text_comes_with_the_log_probabilities_of_its_tokens(tokens: list[str]) -> None:
    outputs: list[Output] = [
        chunk({"content": token}, logprobs={"content": [{"token": token}], "refusal": None}) for token in tokens
    ]
    made = cutter().feed(0, [*outputs, finish("length"), End()])
    said = merge_pieces(made)[0]
    joined = "".join(said.get("tokens", []))
    assert said.get("content", "").startswith(joined)
    assert said["finish"] == "stop" or joined == said.get("content", "")


@pytest.mark.parametrize("stop", [["x"] * (MOST_STOPS + 1), "x" * (LONGEST_STOP + 1)])
def test_the_search_for_stop_strings_has_bounds(stop: object) -> None:
    assert "at most" in str(STOP_SEQUENCES.find_obstacle({"stop": stop}))


@pytest.mark.parametrize("stop", ["", []])
def test_no_stop_string_is_nothing_to_emulate(stop: object) -> None:
    assert STOP_SEQUENCES.find_obstacle({"stop": stop}) == ""
