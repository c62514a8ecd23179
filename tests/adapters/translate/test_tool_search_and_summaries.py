"""Blocks of Messages that only Anthropic's features make, and that say something which other providers must get."""

from __future__ import annotations

from copy import deepcopy

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.translate.message_requests import messages_to_chat_request
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject
from tests.tables import for_each

ASK = {"role": "user", "content": "hi"}
SEARCH = {"type": "tool_use", "id": "toolu_1", "name": "find_tools", "input": {"query": "weather"}}
FOUND = [{"type": "tool_reference", "tool_name": name} for name in ("get_weather", "get_tides")]
TOOLS = [
    {"name": "find_tools", "input_schema": {"type": "object"}},
    {"name": "get_weather", "input_schema": {"type": "object"}, "defer_loading": True},
    {"name": "get_tides", "input_schema": {"type": "object"}, "defer_loading": True},
]


def to_chat(turns: list[JsonObject], **keys: object) -> tuple[JsonObject, Context]:
    request: JsonObject = {"model": "m", "max_tokens": 9, "messages": turns, **keys}
    before = deepcopy(request)
    ctx = Context("actual", Call("POST", "/", request), Receipt(), Target("m", policy=Policy()), request)
    made = messages_to_chat_request(request, ctx)
    assert request == before, "the client's request was altered"
    assert load_validator("hub/chat.request").accepts(made)
    return made, ctx


def test_references_to_tools_are_texts_and_the_tools_are_offered() -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": FOUND}
    turns = [ASK, {"role": "assistant", "content": [SEARCH]}, {"role": "user", "content": [result]}]
    made, ctx = to_chat(turns, tools=TOOLS)
    texts = [part["text"] for part in made["messages"][-1]["content"]]
    assert texts == ["The tool get_weather is available.", "The tool get_tides is available."]
    assert [tool["function"]["name"] for tool in made["tools"]] == ["find_tools", "get_weather", "get_tides"]
    assert not ctx.receipt.losses


@for_each("extra", [{}, {"cache_control": None}, {"encrypted_content": "sealed"}])
def test_the_summary_of_earlier_turns_is_a_text(extra: JsonObject) -> None:
    """The client has left out the turns that it stands for."""
    summary = {"type": "compaction", "content": "Ada asked for the weather.", **extra}
    said = {"role": "assistant", "content": [summary, {"type": "text", "text": "Sunny."}]}
    made, ctx = to_chat([ASK, said, ASK])
    [_, answer, _] = made["messages"]
    assert [part["text"] for part in answer["content"]] == [summary["content"], "Sunny."]
    lost = {str(change.before[-1]) for change in ctx.receipt.losses}
    assert lost == {key for key, value in extra.items() if value}


def test_a_summary_that_failed_says_nothing() -> None:
    said = {"role": "assistant", "content": [{"type": "compaction", "content": None}, {"type": "text", "text": "Yes."}]}
    made, _ = to_chat([ASK, said, ASK])
    assert made["messages"][1]["content"] == "Yes."
