"""What a provider puts beside the name and the arguments of a call reaches every client and goes back to a provider of
the same kind. Gemini refuses the next turn if a call comes back without its signature.

The forms are those of public threads: earendil-works/pi#6733, BerriAI/litellm#16895,
databricks/databricks-ai-bridge#270.
"""

from __future__ import annotations

import orjson
import pytest

from dragoman.adapters.call import JsonObject, Target
from dragoman.adapters.validation import load_validator
from tests.tables import for_each

from .exchanges import encode_chunks, make_reply, run_exchange, write_call

SIGNATURE = "Eo4GCosGAXLI2nx"
GOOGLE = {"extra_content": {"google": {"thought_signature": SIGNATURE}}}
VERTEX = {"extra_content": {"vertex": {"thought_signature": "AY89a18IwQsQ8in/"}}}
LITELLM = {"provider_specific_fields": {"thought_signature": SIGNATURE}}
FLAT = {"thoughtSignature": SIGNATURE}
FORMS = {"Google": GOOGLE, "Vertex": VERTEX, "LiteLLM": LITELLM}
CALL = {"id": "FL1tqiJ9", "type": "function", "function": {"name": "task", "arguments": '{"a":1}'}}
HEAD = {**CALL, "index": 0, "function": {"name": "task", "arguments": ""}}
REST = {"index": 0, "function": {"arguments": '{"a":1}'}}


def answer(keys: JsonObject) -> dict[str, bytes]:
    """A provider's call with these keys: whole; in one chunk without an index, as Gemini streams it; in pieces."""
    deltas = {
        "one chunk": [[{**keys, **CALL}]],
        "with the first piece": [[{**HEAD, **keys}], [REST]],
        "with the last piece": [[HEAD], [REST], [{"index": 0, **keys}]],
    }
    streams = {
        name: encode_chunks({"role": "assistant"}, *({"tool_calls": part} for part in parts), finish="tool_calls")
        for name, parts in deltas.items()
    }
    return {"whole": make_reply({"content": None, "tool_calls": [{**keys, **CALL}]}, "tool_calls"), **streams}


SHAPES = list(answer({}))
in_every_shape = for_each("shape", SHAPES)
every_form = for_each("keys", FORMS.values())


def join_call(deltas: list[JsonObject]) -> JsonObject:
    """The one call of a stream, whose arguments are the only text in pieces."""
    made: JsonObject = {"function": {"name": "", "arguments": ""}}
    for piece in (piece for delta in deltas for piece in delta.get("tool_calls", ())):
        function = piece.get("function", {})
        made["function"] = {key: made["function"][key] + function.get(key, "") for key in ("name", "arguments")}
        made |= {key: value for key, value in piece.items() if key not in ("function", "index")}
    return made


@in_every_shape
@every_form
@pytest.mark.parametrize("client", ["openai/chat", "azure/chat", "mindie/chat"])
def test_chat_clients_get_the_keys_of_a_call(client: str, keys: JsonObject, shape: str) -> None:
    got = run_exchange(client, "openai/chat", answer(keys)[shape])
    call = got.message["tool_calls"][0] if shape == "whole" else join_call(got.deltas)
    assert call == {**CALL, **keys}
    assert got.lost == set()


@in_every_shape
@pytest.mark.parametrize("provider", ["openai/chat", "databricks/chat"])
def test_the_signature_has_its_dialects_name(provider: str, shape: str) -> None:
    raw = answer(FLAT if provider.startswith("databricks") else GOOGLE)[shape]
    for client, keys in (("openai/chat", GOOGLE), ("databricks/chat", FLAT)):
        got = run_exchange(client, provider, raw)
        call = got.message["tool_calls"][0] if shape == "whole" else join_call(got.deltas)
        assert call == {**CALL, **keys}
        assert got.lost == set()


@in_every_shape
@every_form
def test_an_item_of_responses_has_the_keys(keys: JsonObject, shape: str) -> None:
    got = run_exchange("openai/responses", "openai/chat", answer(keys)[shape])
    [item] = got.response["output"]
    assert {key: item[key] for key in (*keys, "call_id", "name", "arguments")} == {
        **keys,
        "call_id": "FL1tqiJ9",
        "name": "task",
        "arguments": '{"a":1}',
    }
    assert got.lost == set()
    if shape != "whole":
        [done] = [event["item"] for event in got.events if event["type"] == "response.output_item.done"]
        assert done == item
        assert all(load_validator("hub/responses.event").accepts(event) for event in got.events)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_chat_client_gets_the_keys_of_an_item(streamed: bool, late: bool) -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "FL1tqiJ9", "name": "task", "status": "completed"}
    item |= {"arguments": '{"a":1}', **GOOGLE}
    whole: JsonObject = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": [item]}
    whole |= {"status": "completed"}
    added = {key: item[key] for key in item if not (late and key in GOOGLE)} | {"arguments": ""}
    events: list[JsonObject] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": added},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    raw = orjson.dumps(whole)
    if streamed:
        raw = b"".join(
            b"data: " + orjson.dumps({**one, "sequence_number": i}) + b"\n\n" for i, one in enumerate(events)
        )
    got = run_exchange("openai/chat", "openai/responses", raw)
    call = join_call(got.deltas) if streamed else got.message["tool_calls"][0]
    assert call == {**CALL, **GOOGLE}
    assert got.lost == set()


# What clients send back

RESULT = {"role": "tool", "tool_call_id": "FL1tqiJ9", "content": "ok"}
ITEMS = [
    {"type": "function_call", "call_id": "FL1tqiJ9", "name": "task", "arguments": '{"a":1}', **GOOGLE},
    {"type": "function_call_output", "call_id": "FL1tqiJ9", "output": "ok"},
]


def send_back(client: str, keys: JsonObject, provider: str, model: str) -> tuple[JsonObject, set[str]]:
    """The call that the provider gets, and the last keys of what was lost."""
    turn = {"role": "assistant", "content": None, "tool_calls": [{**CALL, **keys}]}
    body: JsonObject = {"messages": [{"role": "user", "content": "x"}, turn, RESULT]}
    if client.endswith("responses"):
        body = {"input": [{"role": "user", "content": "x"}, *ITEMS]}
    made, receipt = write_call(client, provider, body, Target(model))
    calls = [item for item in made.get("input", ()) if item.get("type") == "function_call"]
    [call] = calls or made["messages"][1]["tool_calls"]
    return call, {str(change.before[-1]) for change in receipt.losses}


SENT = [  # the client and its keys of a call, the provider, its model, and the keys that it gets
    ("openai/chat", GOOGLE, "openai/chat", "gemini-3-pro", GOOGLE),
    ("openai/chat", GOOGLE, "openai/chat", "an-alias", GOOGLE),
    ("openai/chat", VERTEX, "openai/chat", "google/gemini-3-pro", VERTEX),
    ("openai/chat", LITELLM, "openai/chat", "an-alias", LITELLM),
    ("openai/chat", GOOGLE, "databricks/chat", "databricks-gemini-3-pro", FLAT),
    ("openai/chat", GOOGLE, "openai/responses", "gemini-3-pro", GOOGLE),
    ("databricks/chat", FLAT, "databricks/chat", "databricks-gemini-3-pro", FLAT),
    ("databricks/chat", FLAT, "openai/chat", "gemini-3-pro", GOOGLE),
    ("azure/chat", GOOGLE, "openai/chat", "gemini-3-pro", GOOGLE),
    ("mindie/chat", GOOGLE, "openai/chat", "gemini-3-pro", GOOGLE),
    ("openai/responses", GOOGLE, "openai/chat", "gemini-3-pro", GOOGLE),
    ("openai/responses", GOOGLE, "databricks/chat", "databricks-gemini-3-pro", FLAT),
    ("databricks/responses", GOOGLE, "openai/chat", "gemini-3-pro", GOOGLE),
]


@pytest.mark.parametrize(("client", "given", "provider", "model", "wanted"), SENT)
def test_the_keys_go_back(client: str, given: JsonObject, provider: str, model: str, wanted: JsonObject) -> None:
    call, lost = send_back(client, given, provider, model)
    found = {key: call[key] for key in call if key not in ("id", "function", "name", "arguments", "call_id", "type")}
    assert (found, lost) == (wanted, set())


REFUSED = [
    ("openai/chat", GOOGLE, "openai/chat", "gpt-5"),
    ("openai/chat", VERTEX, "openai/chat", "llama-3.3-70b"),
    ("openai/chat", LITELLM, "openai/chat", "gpt-5"),
    ("openai/chat", GOOGLE, "openai/responses", "a-deployment"),
    ("openai/chat", GOOGLE, "azure/chat", "a-deployment"),
    ("openai/chat", VERTEX, "databricks/chat", "databricks-gemini-3-pro"),
    ("openai/chat", LITELLM, "databricks/chat", "databricks-gemini-3-pro"),
    ("databricks/chat", FLAT, "databricks/chat", "databricks-claude-sonnet-4-5"),
    ("databricks/chat", FLAT, "azure/chat", "a-deployment"),
    ("openai/responses", GOOGLE, "openai/responses", "gpt-5"),
    ("openai/responses", GOOGLE, "databricks/responses", "databricks-gpt-5"),
    ("openai/responses", GOOGLE, "mindie/chat", "qwen3"),
]


@pytest.mark.parametrize(("client", "given", "provider", "model"), REFUSED)
def test_no_other_vendor_gets_them(client: str, given: JsonObject, provider: str, model: str) -> None:
    call, lost = send_back(client, given, provider, model)
    assert not call.keys() & {"extra_content", "provider_specific_fields", "thoughtSignature"}
    assert lost == {"extra_content" if given is FLAT else next(iter(given))}


MESSAGE_KEYS: JsonObject = {
    "annotations": [{"type": "url_citation", "url_citation": {}}],
    "citations": ["https://a.example"],
    "context": {"citations": [{"content": "x", "title": "t", "url": None, "chunk_id": "0"}], "intent": '["x"]'},
    "extra_content": {"google": {"thought_signature": SIGNATURE}},
    "provider_specific_fields": {"citations": []},
    "reasoning_content": "so",
    "thinking_blocks": [{"type": "thinking", "thinking": "so", "signature": "S"}],
}


@for_each("key", MESSAGE_KEYS)
@for_each("provider", ["openai/chat", "databricks/chat", "azure/chat", "mindie/chat", "openai/responses"])
@for_each("client", ["openai/chat", "databricks/chat", "azure/chat", "mindie/chat"])
def test_what_a_reply_has_is_accepted_back(client: str, provider: str, key: str) -> None:
    got = run_exchange(client, "openai/chat", make_reply({"content": "a", key: MESSAGE_KEYS[key]}))
    turn = {name: value for name, value in got.message.items() if value not in (None, [])}
    body, receipt = write_call(client, provider, {"messages": [{"role": "user", "content": "x"}, turn]}, Target("m"))
    lost = {str(change.before[-1]) for change in receipt.losses}
    if provider == "openai/responses":
        assert key not in turn or key in lost or "'reasoning'" in str(body)
    elif isinstance(turn["content"], str):
        assert key not in turn or key in body["messages"][1] or key in lost
    if provider in ("databricks/chat", "azure/chat"):
        assert load_validator(f"{provider.partition('/')[0]}/chat.request", "actual").accepts(body)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "client",
    ["openai/chat", "databricks/chat", "azure/chat", "mindie/chat", "openai/responses", "databricks/responses"],
)
def test_sources_at_the_top_of_a_reply_reach_every_client(client: str, streamed: bool) -> None:
    """Perplexity's `citations` and `search_results`, in every chunk."""
    top = {
        "citations": ["https://a.example"],
        "search_results": [{"title": "A", "url": "https://a.example", "date": None}],
    }
    raw = (
        encode_chunks({"role": "assistant", "content": "a[1]"}, **top)
        if streamed
        else make_reply({"content": "a[1]"}, **top)
    )
    got = run_exchange(client, "openai/chat", raw)
    last = got.response if client.endswith("responses") else got.events[0]
    assert {key: last[key] for key in top} == top
    assert got.lost == set()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("client", ["openai/chat", "databricks/chat", "azure/chat", "mindie/chat"])
def test_the_context_of_azures_own_data_reaches_chat_clients(client: str, streamed: bool) -> None:
    """Azure OpenAI On Your Data: the first delta has the context and no content; chunks have an object of their own."""
    context = MESSAGE_KEYS["context"]
    raw = make_reply({"content": "42 [doc1]", "context": context}, end_turn=True)
    if streamed:
        first = {"role": "assistant", "context": context}
        raw = encode_chunks(first, {"content": "42 [doc1]"}, object="extensions.chat.completion.chunk")
    got = run_exchange(client, "openai/chat", raw)
    assert (got.message["content"], got.message["context"]) == ("42 [doc1]", context)
    assert got.lost == set()
    response = run_exchange("openai/responses", "openai/chat", raw)
    assert response.lost == {"context"}
