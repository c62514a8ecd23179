"""How a request that continues earlier responses is sent to a provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from dragoman.adapters.call import Call, Context, JsonObject, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.pipeline.conversation import Conversation
from dragoman.adapters.responses.stored import StoredResponse

SAID = {"type": "output_text", "text": "hello", "annotations": [], "logprobs": []}
MESSAGE = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [SAID]}
CALL = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "s"}],
    "encrypted_content": "E",
}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}

Ask: TypeAlias = Callable[[JsonObject, list[JsonObject], str], tuple[str, Context]]


@pytest.fixture
def ask() -> Ask:
    """Have a provider answer a request with an output: the response's id, and the context in which it was asked."""
    kept: dict[str, StoredResponse] = {}

    def ask(request: JsonObject, output: list[JsonObject], provider: str) -> tuple[str, Context]:
        request = {"model": "m", **request}
        conversation = Conversation(request, has_store=True, can_retrieve=True)
        recall = conversation.recall()
        if recall is not None:
            conversation.supply(_chain(kept, recall.previous_id), _holders(kept, recall.item_ids))
        ctx = Context("actual", Call("POST", "/", request), Receipt(), Target("m"), request)
        ctx = conversation.continue_for(ctx, provider, True)
        response = {"id": "theirs", "created_at": 1, "status": "completed", "output": output, "store": False}
        _, record = conversation.complete(response)
        assert record is not None
        kept[record.id] = record
        return record.id, ctx

    return ask


def _chain(kept: dict[str, StoredResponse], last: str | None) -> list[StoredResponse]:
    chain: list[StoredResponse] = []
    while last is not None:
        chain.insert(0, kept[last])
        last = kept[last].previous_id
    return chain


def _holders(kept: dict[str, StoredResponse], item_ids: tuple[str, ...]) -> list[StoredResponse]:
    return [one for one in kept.values() if any(item.get("id") in item_ids for item in one.response["output"])]


def test_a_call_that_was_cut_off_is_left_out_and_told(ask: Ask) -> None:
    first, _ = ask({"input": "one"}, [MESSAGE, {**CALL, "status": "incomplete"}], "p")
    _, ctx = ask({"input": "two", "previous_response_id": first}, [], "p")
    assert [item["type"] for item in ctx.request["input"]] == ["message"] * 3
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["previous_response_id"]


def test_a_seal_in_the_input_of_an_earlier_turn_goes_to_its_maker_only(ask: Ask) -> None:
    ask({"input": "one"}, [THOUGHT, MESSAGE], "q")
    referring = [{"type": "item_reference", "id": "rs_1"}, {"role": "user", "content": "two"}]
    second, _ = ask({"input": referring}, [{**MESSAGE, "id": "m2"}], "q")
    following = {"input": "three", "previous_response_id": second}
    _, there = ask(following, [], "p")
    assert there.request["input"][0] == {"type": "reasoning", "summary": THOUGHT["summary"]}
    assert [change.reason for change in there.receipt.losses] == ["content that another provider encrypted is left out"]
    _, back = ask(following, [], "q")
    assert back.request["input"][0]["encrypted_content"] == "E"
    assert back.receipt.losses == []


def test_items_lose_their_ids_but_for_calls_of_the_providers_own_tools(ask: Ask) -> None:
    first, _ = ask({"input": "one"}, [SEARCH, MESSAGE], "p")
    _, ctx = ask({"input": "two", "previous_response_id": first}, [], "p")
    assert [item.get("id") for item in ctx.request["input"]] == [None, "ws_1", None, None]
