"""Reasoning and tool calls out of texts: the pieces, and that no cut of a text changes them."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.local_engine.text.segments import MarkerLexer, Segment, SegmentParser, merge_segments
from dragoman.local_engine.text.reasoning_parser import THINK_MARKERS, ReasoningParser
from dragoman.local_engine.text.tool_call_parser import ToolCallParser
from dragoman.local_engine.text.tool_call_formats import TOOL_CALL_FORMATS, ToolCallFormat, find_tool_call_format

BY_NAME = {form.name: form for form in reversed(TOOL_CALL_FORMATS)}
NAMES = frozenset({"weather", "clock"})
CITY = '{"city": "Oslo, \\"N\\" } ]", "days": [1, {"a": null}]}'


def content(text: str) -> Segment:
    return Segment("content", text)


def call(name: str, arguments: str) -> list[Segment]:
    return [Segment("call", name), Segment("arguments", arguments)]


def read(stage: SegmentParser, parts: list[str]) -> list[Segment]:
    pieces = [piece for part in parts for piece in stage.add(part)]
    return merge_segments([*pieces, *stage.finish()])


def cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(edges)] or [text]


W = f'{{"name": "weather", "arguments": {CITY}}}'
P = f'{{"name": "weather", "parameters": {CITY}}}'
CALLS: list[tuple[str, str, list[Segment]]] = [
    ("hermes", f"<tool_call>\n{W}\n</tool_call>", call("weather", CITY)),
    ("hermes", f"Hm.\n<tool_call>{W}</tool_call>\n<tool_call>{W}</tool_call>",
     [content("Hm."), *call("weather", CITY) * 2]),
    ("hermes", '<tool_call>{"arguments": {"a":1}, "name": "x"}</tool_call> done',
     [*call("x", '{"a":1}'), content("done")]),
    ("hermes", '<tool_call>{"name": "x", "arguments": "{\\"a\\": 1}"}</tool_call>', call("x", '{"a": 1}')),
    ("hermes", '<tool_call>{"name": "x"}</tool_call>', call("x", "{}")),
    ("hermes", '<tool_call>{"name": "x", "arguments": null}</tool_call>', call("x", "{}")),
    ("hermes", '<tool_call>{"name": "x", "arguments": {"t": "</tool_call>"}}</tool_call>',
     call("x", '{"t": "</tool_call>"}')),
    ("hermes", '<tool_call>{"name": "x", "arguments": {"t": "cut', call("x", '{"t": "cut')),
    ("hermes", "<tool_call>no call</tool_call> text", [content("<tool_call>no call</tool_call> text")]),
    ("hermes", '<tool_call>{"name": "we', [content('<tool_call>{"name": "we')]),
    ("hermes", "a < b, <tool and </tool_call>", [content("a < b, <tool and </tool_call>")]),
    ("hermes", "  two words \n", [content("  two words \n")]),
    ("llama3", P, call("weather", CITY)),
    ("llama3", f"<|python_tag|>{P}; {P}", call("weather", CITY) * 2),
    ("llama3", '{"answer": 1}', [content('{"answer": 1}')]),
    ("llama3", '{"name": "Anna", "parameters": {}}', [content('{"name": "Anna", "parameters": {}}')]),
    ("llama3", f"See {P}", [content(f"See {P}")]),
    ("mistral", f"[TOOL_CALLS][{W}, {W}]", call("weather", CITY) * 2),
    ("mistral", f"[TOOL_CALLS] [{W}] and more", [*call("weather", CITY), content("and more")]),
    ("mistral", "[TOOL_CALLS]nothing", [content("[TOOL_CALLS]nothing")]),
    ("mistral-args", f"[TOOL_CALLS]weather[ARGS]{CITY}[TOOL_CALLS]clock{{}}",
     [*call("weather", CITY), *call("clock", "{}")]),
    ("pythonic", "[weather(city='a]b', days=[1, 2.5]), clock(now=True, at=null)]",
     [*call("weather", '{"city": "a]b", "days": [1, 2.5]}'), *call("clock", '{"now": true, "at": null}')]),
    ("pythonic", "<|python_start|>[clock()]<|python_end|>", call("clock", "{}")),
    ("pythonic", "[1, 2, 3] are numbers", [content("[1, 2, 3] are numbers")]),
    ("pythonic", "[open(file='x')]", [content("[open(file='x')]")]),
    ("pythonic", "[clock(at=__import__('os'))]", [content("[clock(at=__import__('os'))]")]),
]  # fmt: skip
THOUGHTS: list[tuple[bool, str, list[Segment]]] = [
    (False, "<think>\nhm, so\n</think>\n\nYes.", [Segment("reasoning", "hm, so"), content("Yes.")]),
    (True, "hm\n</think>Yes </think>", [Segment("reasoning", "hm"), content("Yes </think>")]),
    (False, "Yes <think>no</think>", [content("Yes <think>no</think>")]),
    (False, " \n<think>cut ", [Segment("reasoning", "cut ")]),
    (False, "<thin", [content("<thin")]),
    (False, "  ", [content("  ")]),
    (False, "<think>\n\n</think>\n\nYes", [content("Yes")]),
]


@pytest.mark.parametrize(("name", "text", "expected"), CALLS)
def test_calls_of_each_form(name: str, text: str, expected: list[Segment]) -> None:
    assert read(ToolCallParser(BY_NAME[name], NAMES), [text]) == expected
    assert read(ToolCallParser(BY_NAME[name], NAMES), list(text)) == expected


@pytest.mark.parametrize(("opened", "text", "expected"), THOUGHTS)
def test_reasoning_is_split_off(opened: bool, text: str, expected: list[Segment]) -> None:
    assert read(ReasoningParser(THINK_MARKERS, opened=opened), [text]) == expected
    assert read(ReasoningParser(THINK_MARKERS, opened=opened), list(text)) == expected


@settings(deadline=None)
@given(st.sampled_from(CALLS), st.lists(st.integers(0, 200)))
def test_no_cut_changes_the_calls(case: tuple[str, str, list[Segment]], places: list[int]) -> None:
    name, text, expected = case
    assert read(ToolCallParser(BY_NAME[name], NAMES), cut(text, places)) == expected


WORDS = """<tool_call> </tool_call> [TOOL_CALLS] [ARGS] <|python_tag|> <think> </think> [ ] { } "name" : , ; "weather"
"arguments" " \\ a ( ) = clock < | é"""
FRAGMENTS = st.lists(st.sampled_from([*WORDS.split(), " ", "\n"])).map("".join)


@settings(deadline=None)
@example(BY_NAME["mistral-args"], "<tool_call> [TOOL_CALLS]", [])
@given(st.sampled_from(TOOL_CALL_FORMATS), FRAGMENTS, st.lists(st.integers(0, 200)))
def test_no_cut_changes_what_strange_texts_become(form: ToolCallFormat, text: str, places: list[int]) -> None:
    once = read(ToolCallParser(form, NAMES), [text])
    assert read(ToolCallParser(form, NAMES), cut(text, places)) == once
    if not any(piece.kind == "call" for piece in once):
        assert "".join(piece.text for piece in once).split() == text.split()


@settings(deadline=None)
@given(FRAGMENTS, st.booleans(), st.lists(st.integers(0, 200)))
def test_no_cut_changes_the_reasoning(text: str, opened: bool, places: list[int]) -> None:
    assert read(ReasoningParser(THINK_MARKERS, opened=opened), cut(text, places)) == read(ReasoningParser(THINK_MARKERS, opened=opened), [text])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(), JSON), st.sampled_from(["hermes", "llama3", "mistral", "mistral-args"]), st.booleans()
)
def test_any_arguments_come_through(arguments: dict[str, object], name: str, plain: bool) -> None:
    form, text = BY_NAME[name], json.dumps(arguments, ensure_ascii=plain)
    payload = f"weather[ARGS]{text}" if name == "mistral-args" else f'{{"name": "weather", "{form.arguments}": {text}}}'
    assert read(ToolCallParser(form, NAMES), [*(form.open + form.lead + payload + form.tail + form.close)]) == call(
        "weather", text
    )


@settings(deadline=None)
@given(FRAGMENTS, st.lists(st.integers(0, 200)))
def test_a_lexer_loses_nothing(text: str, places: list[int]) -> None:
    lexer = MarkerLexer(["<think>", "</think>", "[ARGS]"])
    found = [lexeme for part in cut(text, places) for lexeme in lexer.add(part)]
    assert "".join(lexeme.text for lexeme in found) + lexer.finish() == text
    assert sum(lexeme.marker for lexeme in found) == sum(map(text.count, ["<think>", "</think>", "[ARGS]"]))


def test_settings_name_a_form() -> None:
    assert find_tool_call_format("<tool_call>", {"tools": "llama3"}) is BY_NAME["llama3"]
    assert find_tool_call_format("<tool_call>", {"tools": False}) is None
    with pytest.raises(ValueError, match="known are mistral-args, mistral, hermes"):
        find_tool_call_format("", {"tools": "qwen"})
