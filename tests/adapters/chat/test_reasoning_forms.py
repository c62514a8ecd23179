"""Reasoning in the forms in which providers send it, whole and streamed, and back to the provider that made it.

The forms are those of public issue threads and open clients; the names of the cases say whose.
"""

from __future__ import annotations

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.streams import Chunk, End, expand
from dragoman.adapters.translate.chat_to_responses import ChatToResponses
from dragoman.adapters.translate.replies import to_output
from dragoman.adapters.translate.requests import to_chat_request
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext
from tests.tables import for_each

CALLED = ["openai", "databricks", "azure", "mindie"]
SIGNED = {"type": "summary_text", "text": "so", "signature": "S1"}
SEALED = {"type": "summary_encrypted_text", "data": "EvAFCoYBGAIiQL7asS"}
DETAILS = [
    {"type": "reasoning.text", "text": "so", "signature": "S1", "index": 0},
    {"type": "reasoning.encrypted", "data": "EvAFCoYBGAIiQL7asS", "index": 1},
]
ANSWER = {"type": "text", "text": "yes"}

FORMS: dict[str, tuple[JsonObject, JsonObject]] = {
    "reasoning_content: DeepSeek, Kimi, SGLang": ({"reasoning_content": "so"}, {"reasoning_content": "so"}),
    "reasoning: Groq, Cerebras, Ollama": ({"reasoning": "so"}, {"reasoning_content": "so"}),
    "both names, one null: vLLM": ({"reasoning": "so", "reasoning_content": None}, {"reasoning_content": "so"}),
    "both names, the same text: vLLM": ({"reasoning": "so", "reasoning_content": "so"}, {"reasoning_content": "so"}),
    "thinking as a list of texts: Mistral, magistral-medium-2509": (
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "so"}]}, ANSWER]},
        {"reasoning_content": "so"},
    ),
    "thinking as several texts: Mistral": (
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "s"}, {"type": "text", "text": "o"}]}]},
        {"reasoning_content": "so", "content": None},
    ),
    "signed thinking: Anthropic": (
        {"content": [{"type": "thinking", "thinking": "so", "signature": "S1"}, ANSWER]},
        {"reasoning_content": "so", "reasoning_signature": "S1"},
    ),
    "signed summary: Databricks, Claude": (
        {"content": [{"type": "reasoning", "summary": [SIGNED]}, ANSWER]},
        {"reasoning_content": "so", "reasoning_signature": "S1"},
    ),
    "unsigned summary: Databricks, gpt-oss": (
        {"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]}, ANSWER]},
        {"reasoning_content": "so"},
    ),
    "redacted thinking: Databricks, as block/goose sends it back": (
        {"content": [{"type": "reasoning", "summary": [SEALED]}, ANSWER]},
        {"reasoning_details": [{**DETAILS[1], "index": 0}]},
    ),
    "signed and redacted thinking: Databricks": (
        {"content": [{"type": "reasoning", "summary": [SIGNED, SEALED]}, ANSWER]},
        {"reasoning_content": "so", "reasoning_signature": "S1", "reasoning_details": DETAILS},
    ),
    "redacted_thinking: Anthropic": (
        {"content": [{"type": "redacted_thinking", "data": "EvAFCoYBGAIiQL7asS"}, ANSWER]},
        {"reasoning_details": [{**DETAILS[1], "index": 0}]},
    ),
    "reasoning_text: Responses": (
        {"content": [{"type": "reasoning", "content": [{"type": "reasoning_text", "text": "so"}]}, ANSWER]},
        {"reasoning_content": "so"},
    ),
    "reasoning_details and reasoning: OpenRouter": (
        {"reasoning": "so", "reasoning_details": DETAILS},
        {"reasoning_content": "so", "reasoning_signature": "S1", "reasoning_details": DETAILS},
    ),
    "reasoning_details alone, a summary: OpenRouter": (
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "so", "format": "openai-responses-v1"}]},
        {
            "reasoning_content": "so",
            "reasoning_details": [{"type": "reasoning.summary", "summary": "so", "format": "openai-responses-v1"}],
        },
    ),
    "reasoning_details that are no list": ({"reasoning_details": "so"}, {}),
}
KEYS = ("reasoning", "reasoning_content", "reasoning_signature", "reasoning_details")
every_form = for_each(("given", "found"), FORMS.values())


def read(dialect: str, ctx: Context, message: JsonObject) -> JsonObject:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    reply = Reply(200, body, {"content-type": "application/json"}, orjson.dumps(body))
    read_reply = dialects[dialect].called["chat"].read_reply
    return read_reply(reply, ctx)["choices"][0]["message"]


def encode(*deltas: JsonObject) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    events = [orjson.dumps({**chunk, "choices": [choice]}) for choice in choices]
    return b"".join(b"data: " + event + b"\n\n" for event in [*events, b"[DONE]"])


def stream(dialect: str, ctx: Context, raw: bytes, cut: int | None = None) -> list[JsonObject]:
    reader = dialects[dialect].called["chat"].read_stream(ctx)
    outputs = expand([one for part in (raw[:cut], raw[cut or len(raw) :]) for one in reader.receive(part)])
    assert isinstance(outputs[-1], End)
    return [one.body["choices"][0]["delta"] for one in outputs if isinstance(one, Chunk)]


def join(deltas: list[JsonObject]) -> JsonObject:
    found: JsonObject = {}
    for delta in deltas:
        for key, value in delta.items():
            found[key] = value if key == "role" or key not in found or value is None else found[key] + value
    return found


def reasoning_of(message: JsonObject) -> JsonObject:
    return {key: message[key] for key in KEYS if key in message}


@pytest.mark.parametrize("dialect", CALLED)
@every_form
def test_a_whole_reply_has_its_reasoning_in_hub_form(
    context: MakeContext, dialect: str, given: JsonObject, found: JsonObject
) -> None:
    ctx = context()
    message = read(dialect, ctx, {"content": "yes", **given})
    assert reasoning_of(message) == {key: value for key, value in found.items() if key != "content"}
    assert message["content"] == found.get("content", "yes")
    assert not ctx.receipt.losses


@pytest.mark.parametrize("dialect", CALLED)
@every_form
def test_a_stream_has_its_reasoning_in_hub_form(
    context: MakeContext, dialect: str, given: JsonObject, found: JsonObject
) -> None:
    ctx = context()
    message = join(stream(dialect, ctx, encode({"role": "assistant", "content": "yes", **given})))
    assert reasoning_of(message) == {key: value for key, value in found.items() if key != "content"}
    assert message.get("content") == found.get("content", "yes")
    assert not ctx.receipt.losses


def thought(*parts: JsonObject) -> JsonObject:
    return {"content": [{"type": "reasoning", "summary": [*parts]}]}


def test_two_signed_thoughts_of_a_stream_are_listed_whole(context: MakeContext) -> None:
    text = {"type": "summary_text", "text": "a"}
    deltas = [
        thought(text),
        thought({**text, "text": "b"}),
        thought({**text, "text": "", "signature": "S1"}),
        thought({**text, "text": "c"}),
        thought({**text, "text": "d", "signature": "S2"}),
        thought(SEALED),
        thought({**text, "text": "e"}),
        {"content": "yes"},
    ]
    message = join(stream("databricks", context(), encode(*deltas)))
    assert message["reasoning_content"] == "ab\n\ncd\n\ne"
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "ab", "signature": "S1", "index": 0},
        {"type": "reasoning.text", "text": "cd", "signature": "S2", "index": 1},
        {"type": "reasoning.encrypted", "data": SEALED["data"], "index": 2},
        {"type": "reasoning.text", "text": "e", "index": 3},
    ]


def test_the_reasoning_of_a_stream_does_not_depend_on_the_reads(context: MakeContext) -> None:
    raw = encode(thought(SIGNED), thought(SEALED), {"content": "y"}, {"content": "es"})
    whole = stream("databricks", context(), raw)
    assert all(stream("databricks", context(), raw, cut) == whole for cut in range(1, len(raw)))


# Databricks to Databricks


def test_redacted_thinking_goes_through_databricks_ends_unchanged(context: MakeContext) -> None:
    content: list[JsonValue] = [{"type": "reasoning", "summary": [SIGNED, SEALED, {**SIGNED, "text": "then"}]}, ANSWER]
    served = dialects["databricks"].served["chat"]
    message = read("databricks", context(), {"content": content})
    body = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    shown = served.write_reply(body, context()).body["choices"][0]["message"]
    assert shown == {"role": "assistant", "content": content}

    user = {"role": "user", "content": "go on"}
    ctx = context(model="databricks-claude-sonnet-4-5")
    given = {"model": "m", "messages": [user, shown, user]}
    hub = served.read_request(Call("POST", "/serving-endpoints/m/invocations", given), ctx)
    sent = dialects["databricks"].called["chat"].write_request(hub, ctx._replace(request=hub)).body
    assert sent["messages"] == [user, shown, user]
    assert not ctx.receipt.losses


def test_a_stream_of_redacted_thinking_goes_through_databricks_ends_unchanged(context: MakeContext) -> None:
    signature = {"type": "summary_text", "text": "", "signature": "S1"}
    deltas = [thought({"type": "summary_text", "text": "so"}), thought(signature), thought(SEALED), {"content": "yes"}]
    deltas[0]["role"] = "assistant"
    ctx = context()
    reader = dialects["databricks"].called["chat"].read_stream(ctx)
    writer = dialects["databricks"].served["chat"].write_stream(ctx)
    written = b"".join(writer.write(one) for one in reader.receive(encode(*deltas)))
    events = [orjson.loads(line[6:]) for line in written.split(b"\n\n") if line[6:7] == b"{"]
    assert [event["choices"][0]["delta"] for event in events] == [*deltas, {}]


# Through Responses, and back to the provider that made it


BLOCKS: list[JsonValue] = [
    {"type": "summary_text", "text": "so", "signature": "S1"},
    {"type": "summary_encrypted_text", "data": "EvAFCoYBGAIiQL7asS"},
    {"type": "summary_text", "text": "", "signature": "S2"},
    {"type": "summary_text", "text": "then", "signature": "S3"},
]


def replay_items(output: list[JsonObject], ctx: Context) -> JsonValue:
    """The assistant's content that Databricks gets if a client of Responses sends the output of a response back."""
    user = {"role": "user", "content": "go on"}
    kept = [{key: value for key, value in item.items() if key not in ("id", "status")} for item in output]
    hub = to_chat_request({"model": "m", "input": [user, *kept, user]}, ctx)
    return dialects["databricks"].called["chat"].write_request(hub, ctx._replace(request=hub)).body["messages"][1]


def test_every_block_goes_through_responses_and_back_to_databricks(context: MakeContext) -> None:
    content: list[JsonValue] = [{"type": "reasoning", "summary": BLOCKS}, ANSWER]
    ctx = context(model="databricks-claude-sonnet-4-5", summarizes_reasoning=True)
    message = read("databricks", ctx, {"content": content})
    output = to_output({"message": message}, {}, ctx)
    assert [item["type"] for item in output] == ["reasoning"] * 4 + ["message"]
    assert replay_items(output, ctx) == {"role": "assistant", "content": content}
    assert not ctx.receipt.losses


def test_every_block_of_a_stream_goes_through_responses_and_back_to_databricks(context: MakeContext) -> None:
    pieces = [{"type": "summary_text", "text": "so"}, {"type": "summary_text", "text": "", "signature": "S1"}]
    raw = encode(*map(thought, [*pieces, *BLOCKS[1:]]), {"content": "yes"})
    ctx = context(model="databricks-claude-sonnet-4-5", summarizes_reasoning=True)
    reader = dialects["databricks"].called["chat"].read_stream(ctx)
    translator = ChatToResponses(new_response({"model": "m"}, "resp_1", "m", 1), ctx, summary=True)
    outputs = expand([made for one in reader.receive(raw) for made in translator.feed(one)])
    completed = [one.body for one in outputs if isinstance(one, Chunk)][-1]
    assert completed["type"] == "response.completed"
    content = [{"type": "reasoning", "summary": BLOCKS}, ANSWER]
    assert replay_items(completed["response"]["output"], ctx) == {"role": "assistant", "content": content}
    assert not ctx.receipt.losses
