"""What a turn puts in place of what came before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.proxy.conversations.stores.memory import MemoryStore
from dragoman.proxy.conversations.turn import Turn
from dragoman.proxy.http.deadline import Clock

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

Json = dict[str, Any]
Ask = Callable[[Json, list[Json], str], Awaitable[tuple[str, Context]]]


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    """Have a provider answer a request with an output: the response's id, and what the provider was asked."""
    store, clock = MemoryStore(), Clock()

    async def asked(request: Json, output: list[Json], provider: str) -> tuple[str, Context]:
        request = {"model": "m", **request}
        turn = await Turn.begin(store, "", request, True, clock)
        ctx = Context("actual", Call("POST", "/", request), Receipt(), Target("m"), request)
        ctx = turn.continued(ctx, provider, True)
        response = {"id": "theirs", "created_at": 1, "status": "completed", "output": output, "store": False}
        return (await turn.finished(response))["id"], ctx

    yield asked
    clock.stop()


async def test_a_call_that_was_cut_off_is_left_out_and_told(ask: Ask) -> None:
    first, _ = await ask({"input": "one"}, [MESSAGE, {**CALL, "status": "incomplete"}], "p")
    _, ctx = await ask({"input": "two", "previous_response_id": first}, [], "p")
    assert [item["type"] for item in ctx.request["input"]] == ["message"] * 3
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["previous_response_id"]


async def test_a_seal_in_the_input_of_an_earlier_turn_goes_to_its_maker_only(ask: Ask) -> None:
    await ask({"input": "one"}, [THOUGHT, MESSAGE], "q")
    referring = [{"type": "item_reference", "id": "rs_1"}, {"role": "user", "content": "two"}]
    second, _ = await ask({"input": referring}, [{**MESSAGE, "id": "m2"}], "q")
    following = {"input": "three", "previous_response_id": second}
    _, there = await ask(following, [], "p")
    assert there.request["input"][0] == {"type": "reasoning", "summary": THOUGHT["summary"]}
    assert [change.reason for change in there.receipt.losses] == ["what another provider has sealed is left out"]
    _, back = await ask(following, [], "q")
    assert back.request["input"][0]["encrypted_content"] == "E"
    assert back.receipt.losses == []


async def test_items_lose_their_ids_but_for_calls_of_the_providers_own_tools(ask: Ask) -> None:
    first, _ = await ask({"input": "one"}, [SEARCH, MESSAGE], "p")
    _, ctx = await ask({"input": "two", "previous_response_id": first}, [], "p")
    assert [item.get("id") for item in ctx.request["input"]] == [None, "ws_1", None, None]
