"""The reader of Messages streams: what comes through, and what each irregularity becomes."""

from __future__ import annotations

import pytest

from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import DeltaRun, End
from dragoman.contract.json_types import JsonObject, JsonValue

from .streaming import START, block, encode, ending, events_of, make_context, piece, read, relay, stop, write

TEXT = [START, block(0), piece(0, text="Hello"), piece(0, text=" world"), stop(0), *ending()]


def outline(data: bytes) -> list[tuple[object, ...]]:
    """Each event as its type, its index, and what it says."""
    found: list[tuple[object, ...]] = []
    for event in events_of(data):
        kind, delta = event["type"].removeprefix("content_block_"), event.get("delta", {})
        if kind == "start":
            found.append((kind, event["index"], event["content_block"]["type"]))
        elif kind == "delta":
            found.append((kind, event["index"], *(value for key, value in delta.items() if key != "type")))
        elif kind == "stop":
            found.append((kind, event["index"]))
        elif kind == "error":
            found.append((kind, event["error"]["message"]))
        else:
            found.append((kind, *filter(None, [delta.get("stop_reason")])))
    return found


def test_a_stream_goes_through_byte_for_byte() -> None:
    raw = encode(*TEXT)
    ctx = make_context()
    assert relay(raw, ctx=ctx) == raw
    assert ctx.receipt.changes == []


def test_pings_are_left_out() -> None:
    ping: JsonObject = {"type": "ping"}
    assert relay(encode(START, ping, *TEXT[1:3], ping, *TEXT[3:])) == encode(*TEXT)


def test_pieces_of_a_text_are_one_run_that_keeps_its_bytes() -> None:
    ctx = make_context()
    pieces = encode(*(piece(0, text=text) for text in ("a", 'b"', "ü", "")))
    first, second, last = encode(START, block(0), piece(0, text="x")), pieces, encode(stop(0), *ending())
    outputs = read([first, second, last], ctx)
    runs = [one for one in outputs if isinstance(one, DeltaRun)]
    assert [(run.place, len(run.texts), run.data) for run in runs] == [(("delta", "text"), 4, pieces)]
    assert isinstance(outputs[-1], End)


def pad(*events: JsonObject) -> list[bytes]:
    """Events as Anthropic sends them: with a different number of spaces before the last brace of each."""
    made = [encode(event).removesuffix(b"}\n\n") for event in events]
    return [event + b" " * (5 * number % 7) + b"}\n\n" for number, event in enumerate(made)]


def test_padded_events_come_in_runs_and_keep_their_padding() -> None:
    """BerriAI/litellm#5231 has bytes of Anthropic's."""
    texts = ["To", " answer", ' "} ', " }", "  ", " in Boston and Los", ""]
    events = pad(START, block(0), *(piece(0, text=text) for text in texts), stop(0), *ending())
    one_by_one, at_once = (read(reads, make_context()) for reads in (events, [*events[:3], b"".join(events[3:])]))
    assert write(one_by_one) == write(at_once) == b"".join(events)
    assert [len(run.texts) for run in at_once if isinstance(run, DeltaRun)] == [5]
    assert len([run for run in one_by_one if isinstance(run, DeltaRun)]) == 6


@pytest.mark.parametrize("key", ["text", "thinking", "partial_json"])
def test_all_texts_come_in_runs(key: str) -> None:
    kind = {"text": "text", "thinking": "thinking", "partial_json": "tool_use"}[key]
    pieces = encode(*(piece(3, **{key: text}) for text in ("a", "b", "c")))
    outputs = read([encode(START, block(3, kind), piece(3, **{key: "x"})), pieces], make_context())
    run = next(one for one in outputs if isinstance(one, DeltaRun))
    assert (run.body["index"], run.texts, run.data) == (0, [b"a", b"b", b"c"], None)


def test_events_without_a_name_get_one() -> None:
    raw = encode(*TEXT, named=False)
    assert events_of(relay(raw)) == TEXT


def test_events_with_only_a_name_get_a_type() -> None:
    raw = encode(*TEXT).replace(b'"type": "content_block_delta", ', b"")
    assert events_of(relay(raw)) == TEXT


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
def test_a_stream_without_a_stop_reason_ends_with_one_error(cut: int, replies: str) -> None:
    outputs = read([encode(*TEXT[:cut])], make_context(replies))  # type: ignore[arg-type]
    assert isinstance(outputs[-1], Fault) and outputs[-1].code == "upstream_truncated"
    assert not any(isinstance(one, End | Fault) for one in outputs[:-1])


@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
def test_message_stop_proves_nothing_without_a_stop_reason(replies: str) -> None:
    raw = encode(*TEXT[:-2], *ending(None))
    written = events_of(relay(raw, replies))  # type: ignore[arg-type]
    assert written[-1]["type"] == "error" and "no stop reason" in written[-1]["error"]["message"]
    assert "message_stop" not in [event["type"] for event in written]


def test_a_stream_with_a_stop_reason_is_complete_without_message_stop() -> None:
    assert events_of(relay(encode(*TEXT[:-1]))) == TEXT


def test_the_word_that_ends_chat_streams_is_left_out() -> None:
    assert relay(encode(*TEXT[:-1]) + b"data: [DONE]\n\n") == relay(encode(*TEXT[:-1]))
    assert relay(encode(*TEXT) + b"data: [DONE]\n\n") == encode(*TEXT)


def test_an_error_event_ends_the_stream() -> None:
    error: JsonObject = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    written = outline(relay(encode(*TEXT[:3], error, *TEXT[3:])))
    assert written[-1] == ("error", "Overloaded") and len(written) == 4


# What begins and ends


def test_a_stream_that_begins_with_a_block_gets_a_message() -> None:
    written = events_of(relay(encode(*TEXT[1:])))
    assert written[0]["message"]["id"] == "msg_new1" and written[0]["message"]["model"] == "upstream-model"
    assert written[1:] == TEXT[1:]


def test_a_message_that_begins_twice_begins_once() -> None:
    ctx = make_context()
    assert events_of(relay(encode(START, *TEXT), ctx=ctx)) == TEXT
    assert [change.weight for change in ctx.receipt.changes] == ["form"]


def test_a_block_that_begins_twice_begins_once() -> None:
    assert events_of(relay(encode(START, block(0), *TEXT[1:]))) == TEXT


def test_a_block_that_ends_twice_ends_once() -> None:
    assert events_of(relay(encode(*TEXT[:5], stop(0), *TEXT[5:]))) == TEXT


def test_blocks_that_never_end_are_ended() -> None:
    written = outline(relay(encode(START, block(0, "thinking"), block(1), piece(1, text="x"), *ending())))
    assert written == [
        ("message_start",),
        ("start", 0, "thinking"),
        ("stop", 0),
        ("start", 1, "text"),
        ("delta", 1, "x"),
        ("stop", 1),
        ("message_delta", "end_turn"),
        ("message_stop",),
    ]


def test_pieces_of_no_block_get_a_block() -> None:
    written = outline(relay(encode(START, piece(0, thinking="t"), piece(1, text="x"), stop(1), *ending())))
    assert written[1:6] == [
        ("start", 0, "thinking"),
        ("delta", 0, "t"),
        ("stop", 0),
        ("start", 1, "text"),
        ("delta", 1, "x"),
    ]


def test_pieces_after_the_end_of_a_text_are_a_block_of_their_own() -> None:
    ctx = make_context()
    raw = encode(START, block(0), piece(0, text="a"), stop(0), piece(0, text="b"), *ending())
    assert outline(relay(raw, ctx=ctx))[4:7] == [("start", 1, "text"), ("delta", 1, "b"), ("stop", 1)]
    assert "loss" in [change.weight for change in ctx.receipt.changes]


def test_pieces_without_a_type_get_one() -> None:
    given = [piece(0, text="a"), piece(0, text="b")]
    events = [START, block(0), *({**one, "delta": {"text": one["delta"]["text"]}} for one in given), stop(0), *ending()]
    assert events_of(relay(encode(*events))) == [START, block(0), *given, stop(0), *ending()]


def test_input_of_no_call_is_left_out_as_a_loss() -> None:
    ctx = make_context()
    raw = encode(START, block(0), piece(0, partial_json="{}"), piece(4, partial_json="{}"), stop(0), *ending())
    assert outline(relay(raw, ctx=ctx)) == outline(encode(START, block(0), stop(0), *ending()))
    assert [change.weight for change in ctx.receipt.changes] == ["loss"]


def test_blocks_that_all_have_one_number_are_numbered() -> None:
    raw = encode(START, block(0), piece(0, text="a"), stop(0), block(0, "tool_use"), stop(0), *ending("tool_use"))
    assert [event["index"] for event in events_of(relay(raw)) if "index" in event] == [0, 0, 0, 1, 1]


def test_numbers_that_skip_one_are_in_order() -> None:
    """jundot/omlx#1353: the SDK raises IndexError."""
    raw = encode(START, block(0, "thinking"), stop(0), block(2, "tool_use"), piece(2, partial_json="{}"), stop(2))
    written = events_of(relay(raw + encode(*ending("tool_use"))))
    assert [event["index"] for event in written if "index" in event] == [0, 0, 1, 1, 1]


def test_thinking_in_a_block_of_text_gets_a_block_of_its_own() -> None:
    """BerriAI/litellm#33224 and #32357: Claude Code refuses it, and the SDK drops it."""
    ctx = make_context()
    raw = encode(START, START, block(0), piece(0, thinking="t"), piece(0, text="x"), piece(0, text="y"), stop(0))
    assert outline(relay(raw + encode(*ending()), ctx=ctx))[1:-2] == [
        ("start", 0, "text"),
        ("stop", 0),
        ("start", 1, "thinking"),
        ("delta", 1, "t"),
        ("stop", 1),
        ("start", 2, "text"),
        ("delta", 2, "x"),
        ("delta", 2, "y"),
        ("stop", 2),
    ]
    assert {change.weight for change in ctx.receipt.changes} == {"form"}


def test_blocks_without_a_number_are_numbered() -> None:
    events = [START, block(0), piece(0, text="a"), stop(0), block(1), piece(1, text="b"), stop(1), *ending()]
    given = [{key: value for key, value in event.items() if key != "index"} for event in events]
    assert events_of(relay(encode(*given))) == events


# Calls


def test_interleaved_calls_come_one_after_the_other() -> None:
    raw = encode(
        START,
        block(0, "tool_use"),
        piece(0, partial_json='{"a"'),
        block(1, "tool_use"),
        piece(1, partial_json='{"b"'),
        piece(0, partial_json=":1}"),
        block(2),
        piece(1, partial_json=":2}"),
        piece(2, text="x"),
        stop(0),
        stop(1),
        stop(2),
        *ending("tool_use"),
    )
    assert outline(relay(raw))[1:-2] == [
        ("start", 0, "tool_use"),
        ("delta", 0, '{"a"'),
        ("delta", 0, ":1}"),
        ("stop", 0),
        ("start", 1, "tool_use"),
        ("delta", 1, '{"b"'),
        ("delta", 1, ":2}"),
        ("stop", 1),
        ("start", 2, "text"),
        ("delta", 2, "x"),
        ("stop", 2),
    ]


def test_a_call_that_begins_again_while_it_waits_comes_once() -> None:
    first, second = block(0, "tool_use"), block(1, "tool_use")
    raw = encode(START, first, second, second, piece(1, partial_json="{}"), stop(0), stop(1), *ending("tool_use"))
    expected = encode(START, first, stop(0), second, piece(1, partial_json="{}"), stop(1), *ending("tool_use"))
    assert relay(raw) == expected


def test_what_a_message_has_at_its_beginning_is_only_its_envelope() -> None:
    ctx = make_context()
    begun = {**START["message"], "role": "user", "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"}
    written = events_of(relay(encode({"type": "message_start", "message": begun}, *ending()), ctx=ctx))
    assert written[:1] == [START] and written[1]["content_block"] == {"type": "text", "text": "x"}
    assert {(change.before or change.after)[0]: change.weight for change in ctx.receipt.changes} == {
        "role": "loss",
        "content": "form",
        "stop_reason": "loss",
    }


def test_a_text_that_a_message_has_at_its_beginning_is_a_block() -> None:
    begun = {"type": "message_start", "message": {**START["message"], "content": "x"}}
    assert outline(relay(encode(begun, *ending())))[1:3] == [("start", 0, "text"), ("stop", 0)]
    assert events_of(relay(encode(begun, *ending())))[1]["content_block"]["text"] == "x"


@pytest.mark.parametrize("content", [5, {"text": "x"}, ["x"]])
def test_another_content_at_the_beginning_is_a_loss(content: JsonValue) -> None:
    ctx = make_context()
    begun = {"type": "message_start", "message": {**START["message"], "content": content}}
    assert events_of(relay(encode(begun, *TEXT[1:]), ctx=ctx)) == TEXT
    assert [change.before for change in ctx.receipt.losses] == [("content",)]


def test_a_beginning_that_is_no_message_is_a_loss() -> None:
    ctx = make_context()
    begun = {"type": "message_start", "message": 5}
    assert outline(relay(encode(begun, *TEXT[1:]), ctx=ctx)) == outline(encode(*TEXT))
    assert [change.before for change in ctx.receipt.losses] == [("message",)]


def test_calls_that_never_end_all_come() -> None:
    raw = encode(
        START, *(event for i in range(3) for event in (block(i, "tool_use"), piece(i, partial_json="{}"))), *ending()
    )
    written = outline(relay(raw))
    expected = [one for i in range(3) for one in (("start", i, "tool_use"), ("delta", i, "{}"), ("stop", i))]
    assert written[1:-2] == expected
    assert written[-2] == ("message_delta", "tool_use")


def test_an_input_that_comes_with_its_call_becomes_a_piece() -> None:
    raw = encode(START, block(0, "tool_use", input={"a": 1}), stop(0), *ending("tool_use"))
    assert outline(relay(raw))[1:4] == [("start", 0, "tool_use"), ("delta", 0, '{"a":1}'), ("stop", 0)]
    assert events_of(relay(raw))[1]["content_block"]["input"] == {}


def test_an_input_that_comes_twice_comes_once() -> None:
    raw = encode(START, block(0, "tool_use", input={"a": 1}), piece(0, partial_json='{"a":1}'), stop(0), *ending())
    assert outline(relay(raw))[1:4] == [("start", 0, "tool_use"), ("delta", 0, '{"a":1}'), ("stop", 0)]


def test_calls_get_ids_of_their_own() -> None:
    blocks = [block(i, "tool_use", id=given) for i, given in enumerate(["a", "a", "", None])]
    raw = encode(START, *(event for i, one in enumerate(blocks) for event in (one, stop(i))), *ending("tool_use"))
    starts = [event["content_block"]["id"] for event in events_of(relay(raw)) if "content_block" in event]
    assert starts == ["a", "toolu_new1", "toolu_new2", "toolu_new3"]


# Stop reasons and usage


@pytest.mark.parametrize(
    ("word", "expected"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("stop_sequence", "stop_sequence")],
)
def test_words_of_other_apis_are_read(word: str, expected: str) -> None:
    assert events_of(relay(encode(*TEXT[:-2], *ending(word))))[-2]["delta"]["stop_reason"] == expected


def test_a_word_that_nobody_knows_reads_end_turn_as_a_loss() -> None:
    ctx = make_context()
    assert events_of(relay(encode(*TEXT[:-2], *ending("news")), ctx=ctx)) == TEXT
    assert [(change.weight, "'news'" in change.reason) for change in ctx.receipt.changes] == [("loss", True)]


@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
def test_a_stop_reason_that_reports_a_failure_is_a_fault(replies: str) -> None:
    written = events_of(relay(encode(*TEXT[:-2], *ending("abort")), replies))  # type: ignore[arg-type]
    assert written[-1]["type"] == "error" and "'abort'" in written[-1]["error"]["message"]


def test_a_word_that_nobody_knows_is_a_fault_if_strict() -> None:
    assert events_of(relay(encode(*TEXT[:-2], *ending("news")), "strict"))[-1]["type"] == "error"


def test_agents_do_not_wait_for_a_call_that_has_not_come() -> None:
    ctx = make_context()
    assert events_of(relay(encode(*TEXT[:-2], *ending("tool_use")), ctx=ctx)) == TEXT
    assert [change.weight for change in ctx.receipt.changes] == ["loss"]


def test_the_first_stop_reason_that_says_more_counts_with_the_last_counts() -> None:
    raw = encode(
        *TEXT[:-2], ending("end_turn", 4)[0], ending("max_tokens", 5)[0], ending(None, 6, input_tokens=9)[0], TEXT[-1]
    )
    last = events_of(relay(raw))[-2]
    assert last["delta"] == {"stop_reason": "max_tokens", "stop_sequence": None}
    assert last["usage"] == {"output_tokens": 6, "input_tokens": 9}


def test_pieces_after_the_stop_reason_come_before_it() -> None:
    raw = encode(*TEXT[:3], ending()[0], *TEXT[3:5], TEXT[-1])
    assert events_of(relay(raw)) == TEXT


def test_counts_under_way_go_through() -> None:
    raw = encode(START, ending(None, 2)[0], *TEXT[1:])
    assert relay(raw) == raw


def test_counts_that_are_missing_are_filled() -> None:
    raw = encode(START, *TEXT[1:-2], {"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    last = events_of(relay(raw))[-2]
    assert last == {**TEXT[-2], "usage": {"output_tokens": 0}}


# What is unknown


def test_unknown_events_blocks_and_pieces_go_through() -> None:
    raw = encode(
        START,
        {"type": "news", "a": 1},
        block(0, "news", b=2),
        piece(0, type="news_delta", c=3),
        stop(0),
        *ending(),
    )
    assert relay(raw) == raw


def test_a_call_without_a_name_is_a_fault() -> None:
    written = outline(relay(encode(START, block(0, "tool_use", name=None), stop(0), *ending())))
    assert written[-1][0] == "error" and len(written) == 2


def test_under_off_everything_is_as_it_came() -> None:
    raw = encode(START, START, block(0), block(0), piece(5, text="x"), *ending("tool_use"))
    assert relay(raw, "off") == raw
