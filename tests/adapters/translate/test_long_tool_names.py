"""Tools of Messages may have longer names than functions of chat: agents join those of servers, plugins and tools."""

from __future__ import annotations

from copy import deepcopy

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.streams import Chunk, End
from dragoman.adapters.translate.chat_to_messages import ChatToMessages
from dragoman.adapters.translate.message_replies import to_message
from dragoman.adapters.translate.message_requests import messages_to_chat_request
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject

from .message_oracles import accumulate_message, list_bodies, make_context, translate

LONG = "mcp__plugin_github_enterprise_server__create_pull_request_review_comment_"
NAMES = [LONG + "thread", LONG + "reply", "read_file"]
ENVELOPE = {"id": "c", "created": 1, "model": "m"}


def make_request(**keys: object) -> JsonObject:
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in NAMES]
    ask = {"role": "user", "content": "hi"}
    return {"model": "m", "max_tokens": 9, "messages": [ask], "tools": tools, **keys}


def to_chat(request: JsonObject) -> tuple[JsonObject, Receipt]:
    before, receipt = deepcopy(request), Receipt()
    ctx = Context("actual", Call("POST", "/", request), receipt, Target("m", policy=Policy()), request)
    made = messages_to_chat_request(request, ctx)
    assert request == before, "the client's request was altered"
    assert load_validator("openai/chat.request", "actual").accepts(made)
    return made, receipt


def list_short_names() -> list[str]:
    made, _ = to_chat(make_request())
    return [tool["function"]["name"] for tool in made["tools"]]


def make_call(name: str, index: int) -> JsonObject:
    return {"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": "{}"}}


def test_long_names_are_cut_and_stay_apart() -> None:
    made, receipt = to_chat(make_request())
    found = [tool["function"]["name"] for tool in made["tools"]]
    assert [len(name) for name in found] == [64, 64, 9]
    assert len(set(found)) == 3 and found[2] == "read_file"
    assert not receipt.losses
    assert [change.before for change in receipt.changes if change.before[-1:] == ("name",)] == [
        ("tools", 0, "name"),
        ("tools", 1, "name"),
    ]


def test_calls_of_earlier_turns_and_the_choice_have_the_same_names() -> None:
    used = {"type": "tool_use", "id": "toolu_1", "name": NAMES[0], "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    ask = {"role": "user", "content": "hi"}
    turns = [ask, {"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
    made, _ = to_chat(make_request(messages=turns, tool_choice={"type": "tool", "name": NAMES[1]}))
    first, second, _ = list_short_names()
    assert made["messages"][1]["tool_calls"][0]["function"]["name"] == first
    assert made["tool_choice"]["function"]["name"] == second


def test_a_whole_answer_has_the_clients_names() -> None:
    calls = [make_call(name, k) for k, name in enumerate(list_short_names())]
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    made = to_message({**ENVELOPE, "object": "chat.completion", "choices": [choice]}, make_request(), make_context())
    assert [block["name"] for block in made["content"]] == NAMES


def test_a_stream_has_the_clients_names() -> None:
    deltas: list[JsonObject] = []
    for k, name in enumerate(list_short_names()):
        head, rest = make_call(name[:20], k), {"index": k, "function": {"name": name[20:], "arguments": "{}"}}
        deltas += [{"tool_calls": [{**head, "function": {"name": name[:20], "arguments": ""}}]}, {"tool_calls": [rest]}]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    chunks = [Chunk({**ENVELOPE, "object": "chat.completion.chunk", "choices": [choice]}) for choice in choices]
    events = list_bodies(translate(ChatToMessages(make_request(), make_context()), [*chunks, End()]))
    assert [block["name"] for block in accumulate_message(events)["content"]] == NAMES
