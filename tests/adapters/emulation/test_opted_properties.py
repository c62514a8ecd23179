"""A target whose format or tools are emulated gives the answer of one that has them, whole and streamed."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import JsonObject
from dragoman.adapters.emulation.registry import EMULATIONS

from .opted import SCHEMA, Said, Scripted, ask, form, join_message, prepare, read, run

TOOLS: list[JsonObject] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "g")
]
TEXTS = st.text(st.sampled_from('ab "\\\n{}<>é👋`'), max_size=12)
VALUES = st.fixed_dictionaries({"city": TEXTS}, optional={"days": st.integers(-5, 5)})
CALLS = st.lists(st.tuples(st.sampled_from("fg"), st.dictionaries(TEXTS, TEXTS, max_size=2)), max_size=3)
WRONG = ["", "I think so.", "{", "[]", '{"town": "a"}', '```json\n{"city": 1}\n```']
UNREAD = ["<tool_call>", "<tool_call>{}</tool_call>", '<tool_call>{"name": "h"}</tool_call>']


def encode(value: Any) -> str:
    return str(orjson.dumps(value).decode())


def write_calls(calls: list[tuple[str, JsonObject]]) -> str:
    written = [encode({"name": name, "arguments": arguments}) for name, arguments in calls]
    return "".join(f"<tool_call>{one}</tool_call>\n" for one in written)


@given(
    value=VALUES,
    calls=CALLS,
    has_tools=st.booleans(),
    mode=st.sampled_from(["tool", "instruct"]),
    wrong=st.none() | st.sampled_from(WRONG),
    fence=st.sampled_from(["{}", "```json\n{}\n```", "Here:\n```\n{}\n```"]),
    stream=st.booleans(),
    holds=st.booleans(),
    is_object=st.booleans(),
    cuts=st.integers(1, 9),
    size=st.integers(1, 500),
)
def test_a_format(
    value: JsonObject,
    calls: list[tuple[str, JsonObject]],
    has_tools: bool,
    mode: str,
    wrong: str | None,
    fence: str,
    stream: bool,
    holds: bool,
    is_object: bool,
    cuts: int,
    size: int,
) -> None:
    wanted = {"type": "json_object"} if is_object else form()
    asked = ask(response_format=wanted, stream=stream, **({"tools": TOOLS} if has_tools else {}))
    if stream:
        asked["stream_options"] = {"include_usage": True}
    text, used = encode(value), [(name, encode(arguments)) for name, arguments in calls] if has_tools else []
    able = read(run(prepare(asked), Scripted(Said("" if used else text, used), cuts=cuts), size))

    is_held = mode == "instruct" and (holds or not stream)
    answers: list[Any] = [Said("", used)] if used else [Said(fence.replace("{}", text, 1) if is_held else text)]
    if mode == "tool":
        answers = [Said(None, used or [("final_answer", text)])]
    elif is_held and wrong is not None and not used and not (is_object and wrong[:1] in ("{", "`") and "}" in wrong):
        answers.insert(0, Said(wrong))
    model = Scripted(*answers, cuts=cuts)
    attempt = prepare(asked, lacks=["response_format"], response_format=mode, hold_streams=holds)
    found = read(run(attempt, model, size))
    assert join_message(found) == join_message(able)
    assert attempt.outcome.state == "complete"
    assert attempt.receipt.losses == []
    assert len(model.asked) == len(answers)
    assert found[-1]["usage"]["total_tokens"] == 12 * len(answers)
    assert all("response_format" not in body for body in model.asked)


@given(
    text=TEXTS.map(str.strip),
    calls=CALLS,
    choice=st.sampled_from([None, "auto", "none"]),
    one_call=st.booleans(),
    wrong=st.none() | st.sampled_from(UNREAD),
    stream=st.booleans(),
    holds=st.booleans(),
    cuts=st.integers(1, 9),
    size=st.integers(1, 500),
)
def test_tools(
    text: str,
    calls: list[tuple[str, JsonObject]],
    choice: str | None,
    one_call: bool,
    wrong: str | None,
    stream: bool,
    holds: bool,
    cuts: int,
    size: int,
) -> None:
    asked = ask(tools=TOOLS, stream=stream, **({} if choice is None else {"tool_choice": choice}))
    asked |= {"parallel_tool_calls": False} if one_call else {}
    calls = [] if choice == "none" else calls[:1] if one_call else calls
    used = [(name, encode(arguments)) for name, arguments in calls]
    able = read(run(prepare(asked), Scripted(Said(text, used), cuts=cuts), size))

    answers = [Said(f"{text}\n{write_calls(calls)}" if calls else text)]
    if wrong is not None and (holds or not stream) and choice != "none":
        answers.insert(0, Said(wrong))
    model = Scripted(*answers, cuts=cuts)
    lacks = ["tools", "tool_choice", "parallel_tool_calls"]
    attempt = prepare(asked, lacks=lacks, tools="instruct", hold_streams=holds, emulates=frozenset(EMULATIONS))
    assert join_message(read(run(attempt, model, size))) == join_message(able)
    assert attempt.outcome.state == "complete"
    assert attempt.receipt.losses == []
    assert len(model.asked) == len(answers)


@given(
    mode=st.sampled_from(["tool", "instruct"]),
    stream=st.booleans(),
    holds=st.booleans(),
    cut=st.integers(0, 1),
    choices=st.integers(1, 3),
)
def test_a_cut_reply_fails_the_whole(mode: str, stream: bool, holds: bool, cut: int, choices: int) -> None:
    asked = ask(response_format=form(), stream=stream, n=choices)
    options: JsonObject = {"lacks": ["n", "response_format"], "emulates": frozenset({"n"})}
    attempt = prepare(asked, response_format=mode, hold_streams=holds, **options)
    said = [("final_answer", encode({"city": "a"}))] if mode == "tool" else []
    data = run(attempt, Scripted(Said("" if said else encode(SCHEMA), said)), cut=cut % len(attempt.calls))
    assert attempt.outcome.state == "failed"
    assert b"[DONE]" not in data


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", ["tool", "instruct"])
def test_everything_at_once(stream: bool, mode: str) -> None:
    """Three choices, each cut at a stop string, in a format, with counted usage."""
    asked = ask(response_format={"type": "json_object"}, n=3, stop="zzz", stream=stream)
    asked |= {"stream_options": {"include_usage": True}} if stream else {}
    lacks = ["n", "stop", "response_format"]
    attempt = prepare(
        asked, lacks=lacks, emulates=frozenset(EMULATIONS), response_format=mode, usage="count", model="gpt-4o"
    )
    said = Said(calls=[("final_answer", '{"a":1}')]) if mode == "tool" else Said('{"a":1}')
    events = read(run(attempt, Scripted(said, usage=False)))
    texts: dict[int, str] = {}
    for event in events:
        for choice in event["choices"]:
            held = choice.get("message") or choice["delta"]
            texts[choice["index"]] = texts.get(choice["index"], "") + (held.get("content") or "")
    assert texts == dict.fromkeys(range(3), '{"a":1}')
    assert events[-1]["usage"]["completion_tokens"] > 0
    told = [change.before[0] for change in attempt.receipt.changes if change.action == "emulated"]
    assert sorted(set(told)) == ["n", "response_format", "stop"]
