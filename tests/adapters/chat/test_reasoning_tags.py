"""Reasoning between tags in the content, whole and streamed, however it is cut into pieces."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Context, Reply
from dragoman.adapters.chat.reasoning_tags import TagSplitter, split_tags
from dragoman.adapters.streams import Chunk, DeltaRun, End, expand
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext
from tests.tables import for_each

HARMONY = "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>yes"
TAGGED = {
    "DeepSeek-R1, Qwen3": ("<think>\nso\n</think>\n\nyes", "so", "yes"),
    "Qwen3 without thinking": ("<think>\n\n</think>\n\nyes", "", "yes"),
    "white space first": (" \n<think>so</think>yes", "so", "yes"),
    "thinking": ("<thinking>so</thinking>yes", "so", "yes"),
    "reasoning": ("<reasoning>so</reasoning>yes", "so", "yes"),
    "Gemini": ("<thought>so</thought>yes", "so", "yes"),
    "Magistral": ("[THINK]so[/THINK]yes", "so", "yes"),
    "Seed-OSS": ("<seed:think>so</seed:think>yes", "so", "yes"),
    "Kimi-VL": ("◁think▷so◁/think▷yes", "so", "yes"),
    "gpt-oss": (HARMONY, "so", "yes"),
    "no closing tag": ("<think>so it", "so it", ""),
    "a part of the closing tag at the end": ("<think>so</thi", "so</thi", ""),
    "white space inside stays": ("<think>so\n\n  it is\n</think>yes", "so\n\n  it is", "yes"),
    "another closing tag inside": ("<think>so</thinking>it</think>yes", "so</thinking>it", "yes"),
    "tags in the answer": ("<think>so</think>write <think>x</think>", "so", "write <think>x</think>"),
    "less-than signs inside": ("<think>a < b </ c</think>yes", "a < b </ c", "yes"),
}
UNTAGGED = ["", "yes", " \n yes", "<thin", "<thinks>so</thinks>", "a <think>so</think>", "so</think>yes", "<", "\n\n"]
UNTAGGED += [" " * 65 + "<think>so</think>yes"]
IMPLIED = {
    "DeepSeek-R1 with its template": ("Hm, so.\n</think>\n\nyes", "Hm, so.", "yes"),
    "the tag comes nevertheless": ("<think>so</think>yes", "so", "yes"),
    "no thought": ("</think>yes", "", "yes"),
    "no closing tag": ("so it", "so it", ""),
    "Magistral": ("so[/THINK]yes", "so", "yes"),
}
CASES = [(text, False, thought, answer) for text, thought, answer in TAGGED.values()]
CASES += [(text, False, "", text) for text in UNTAGGED]
CASES += [(text, True, thought, answer) for text, thought, answer in IMPLIED.values()]
PIECES = [
    "<think>",
    "</think>",
    "<",
    ">",
    "/",
    "think",
    "[THINK]",
    "[/THINK]",
    " ",
    "\n",
    "a",
    "</",
    "◁/think▷",
    "b" * 9,
]


@for_each(("text", "implied", "thought", "answer"), CASES)
def test_a_text_is_split_at_its_tags(text: str, implied: bool, thought: str, answer: str) -> None:
    assert split_tags(text, implied=implied) == (thought, answer)


def split_pieces(pieces: list[str], *, implied: bool) -> tuple[str, str]:
    splitter = TagSplitter(implied=implied)
    pairs = [*map(splitter.feed, pieces), splitter.close()]
    return "".join(thought for thought, _ in pairs), "".join(answer for _, answer in pairs)


@given(pieces=st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=30), implied=st.booleans())
def test_any_pieces_give_the_same(pieces: list[str], implied: bool) -> None:
    text = "".join(pieces)
    whole = split_tags(text, implied=implied)
    assert split_pieces(pieces, implied=implied) == split_pieces([*text], implied=implied) == whole


@given(text=st.text())
def test_a_text_without_tags_is_unchanged(text: str) -> None:
    if not text.lstrip().startswith(("<", "[", "◁")):
        assert split_tags(text, implied=False) == ("", text)


@for_each("cut", range(1, len(HARMONY)))
def test_a_tag_may_be_cut_anywhere(cut: int) -> None:
    assert split_pieces([HARMONY[:cut], HARMONY[cut:]], implied=False) == ("so", "yes")


def test_of_a_thought_only_a_part_of_a_tag_is_held() -> None:
    splitter = TagSplitter(implied=False)
    assert [splitter.feed(text) for text in ("<think>a", "b <", "c", "d</th", "ink>", "e")] == [
        ("a", ""),
        ("b", ""),
        (" <c", ""),
        ("d", ""),
        ("", ""),
        ("", "e"),
    ]
    assert splitter.is_passing


# The setting of the provider


def read(ctx: Context, content: JsonValue, finish: str = "stop") -> JsonObject:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    reply = Reply(200, body, {"content-type": "application/json"}, orjson.dumps(body))
    message = dialects["openai"].called["chat"].read_reply(reply, ctx)["choices"][0]["message"]
    return {key: message[key] for key in ("content", "reasoning_content") if key in message}


def encode(texts: list[str], finish: str = "stop") -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]
    choices += [{"index": 0, "delta": {"content": text}, "finish_reason": None} for text in texts]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [orjson.dumps({**chunk, "choices": [choice]}) for choice in choices]
    return b"".join(b"data: " + event + b"\n\n" for event in [*events, b"[DONE]"])


def stream(ctx: Context, texts: list[str]) -> tuple[str, str]:
    outputs = expand(dialects["openai"].called["chat"].read_stream(ctx).receive(encode(texts)))
    assert isinstance(outputs[-1], End)
    deltas = [one.body["choices"][0]["delta"] for one in outputs if isinstance(one, Chunk)]
    empty = [delta for delta in deltas[1:] if "" in (delta.get("content"), delta.get("reasoning_content"))]
    assert len(empty) == texts.count("")
    joined = ["".join(delta.get(key) or "" for delta in deltas) for key in ("reasoning_content", "content")]
    return joined[0], joined[1]


@for_each(("text", "implied", "thought", "answer"), CASES)
def test_with_the_setting_replies_are_split(
    context: MakeContext, text: str, implied: bool, thought: str, answer: str
) -> None:
    ctx = context(reasoning_tags="implied" if implied else True)
    found = read(ctx, text)
    assert found.get("reasoning_content", "") == thought
    assert (found["content"] or "") == answer
    assert not ctx.receipt.losses
    for texts in ([text], [*text]):
        assert stream(context(reasoning_tags="implied" if implied else True), texts) == (thought, answer)


def test_without_the_setting_nothing_is_split(context: MakeContext) -> None:
    text = "<think>so</think>yes"
    assert read(context(), text) == {"content": text}
    assert stream(context(), [*text]) == ("", text)


@pytest.mark.parametrize("texts", [["<think>so</think>", "y", "e", "s", "."], ["y", "e", "s", "."]])
def test_after_the_thought_a_stream_is_read_as_fast_as_without_the_setting(
    context: MakeContext, texts: list[str]
) -> None:
    outputs = dialects["openai"].called["chat"].read_stream(context(reasoning_tags=True)).receive(encode(texts))
    assert any(isinstance(output, DeltaRun) for output in outputs)


def test_tags_do_not_concern_calls_and_other_choices(context: MakeContext) -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    deltas: list[tuple[int, JsonObject]] = [
        (0, {"content": "<think>s"}),
        (1, {"content": "plain"}),
        (0, {"content": "o</thi"}),
        (1, {"content": "<think>"}),
        (0, {"content": "nk>"}),
        (0, {"tool_calls": [call]}),
    ]
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices: list[JsonObject] = [{"index": i, "delta": delta, "finish_reason": None} for i, delta in deltas]
    choices += [{"index": i, "delta": {}, "finish_reason": word} for i, word in ((0, "tool_calls"), (1, "stop"))]
    raw = b"".join(b"data: " + orjson.dumps({**chunk, "choices": [choice]}) + b"\n\n" for choice in choices)
    reader = dialects["openai"].called["chat"].read_stream(context(reasoning_tags=True))
    outputs = expand([*reader.receive(raw), *reader.close()])
    found = [one.body["choices"][0] for one in outputs if isinstance(one, Chunk)]
    texts = {
        (i, key): "".join(one["delta"].get(key) or "" for one in found if one["index"] == i)
        for i in (0, 1)
        for key in ("reasoning_content", "content")
    }
    assert texts == {
        (0, "reasoning_content"): "so",
        (0, "content"): "",
        (1, "reasoning_content"): "",
        (1, "content"): "plain<think>",
    }
    assert [one["delta"]["tool_calls"][0].get("id") for one in found if "tool_calls" in one["delta"]][:1] == ["a"]


def test_a_finish_that_comes_with_the_last_text_comes_after_it(context: MakeContext) -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": {"role": "assistant", "content": "<think>so</think>yes <"}, "finish_reason": "stop"}
    raw = b"data: " + orjson.dumps({**chunk, "choices": [choice]}) + b"\n\ndata: [DONE]\n\n"
    outputs = expand(dialects["openai"].called["chat"].read_stream(context(reasoning_tags=True)).receive(raw))
    found = [one.body["choices"][0] for one in outputs if isinstance(one, Chunk)]
    assert [one["finish_reason"] for one in found] == [None, "stop"]
    assert found[0]["delta"] == {"role": "assistant", "reasoning_content": "so", "content": "yes <"}
