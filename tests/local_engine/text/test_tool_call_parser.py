"""The tool call parser: each format, malformed text, and independence of how the text is split."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st
from parser_rig import FRAGMENTS, content, parse, split

from dragoman.local_engine.text.segments import Segment
from dragoman.local_engine.text.tool_call_formats import TOOL_CALL_FORMATS, ToolCallFormat
from dragoman.local_engine.text.tool_call_parser import ToolCallParser
from tests.tables import for_each

BY_NAME = {tool_format.name: tool_format for tool_format in reversed(TOOL_CALL_FORMATS)}
NAMES = frozenset({"weather", "clock"})
CITY = '{"city": "Oslo, \\"N\\" } ]", "days": [1, {"a": null}]}'


def call(name: str, arguments: str) -> list[Segment]:
    return [Segment("call", name), Segment("arguments", arguments)]


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


@for_each(("name", "text", "expected"), CALLS)
def test_each_format_is_parsed(name: str, text: str, expected: list[Segment]) -> None:
    assert parse(ToolCallParser(BY_NAME[name], NAMES), [text]) == expected
    assert parse(ToolCallParser(BY_NAME[name], NAMES), list(text)) == expected


@given(st.sampled_from(CALLS), st.lists(st.integers(0, 200)))
def test_the_result_does_not_depend_on_the_split(case: tuple[str, str, list[Segment]], positions: list[int]) -> None:
    name, text, expected = case
    assert parse(ToolCallParser(BY_NAME[name], NAMES), split(text, positions)) == expected


@example(BY_NAME["mistral-args"], "<tool_call> [TOOL_CALLS]", [])
@given(st.sampled_from(TOOL_CALL_FORMATS), FRAGMENTS, st.lists(st.integers(0, 200)))
def test_the_result_for_malformed_text_does_not_depend_on_the_split(
    tool_format: ToolCallFormat, text: str, positions: list[int]
) -> None:
    once = parse(ToolCallParser(tool_format, NAMES), [text])
    assert parse(ToolCallParser(tool_format, NAMES), split(text, positions)) == once
    if not any(segment.kind == "call" for segment in once):
        assert "".join(segment.text for segment in once).split() == text.split()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(), JSON), st.sampled_from(["hermes", "llama3", "mistral", "mistral-args"]), st.booleans()
)
def test_any_arguments_are_preserved(arguments: dict[str, object], name: str, plain: bool) -> None:
    tool_format, text = BY_NAME[name], json.dumps(arguments, ensure_ascii=plain)
    payload = (
        f"weather[ARGS]{text}"
        if name == "mistral-args"
        else f'{{"name": "weather", "{tool_format.arguments}": {text}}}'
    )
    assert parse(
        ToolCallParser(tool_format, NAMES),
        [*(tool_format.open + tool_format.prefix + payload + tool_format.suffix + tool_format.close)],
    ) == call("weather", text)
