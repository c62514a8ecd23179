"""How a request that continues earlier responses is sent to a provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from dragoman.adapters.call import Call, Context, JsonObject, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline.conversation import Conversation, find_provider_id
from dragoman.adapters.responses.stored import StoredResponse, find_response_id, new_item_id
from dragoman.adapters.streams import Chunk

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
        shown = conversation.with_store_fields(response, Receipt())
        record = conversation.create_record(shown, find_provider_id(response))
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


USER = {"role": "user", "content": "one"}
SECOND_CALL = {**CALL, "id": "f2", "call_id": "c2"}


def result(call_id: str, output: str = "sunny") -> JsonObject:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def kinds(ctx: Context) -> list[str]:
    return [item.get("type", "message") for item in ctx.request["input"]]


def test_an_agent_that_sends_everything_again(ask: Ask) -> None:
    """semantic-kernel sends the user's message and every result again, with the id of the previous response."""
    first, _ = ask({"input": [USER]}, [CALL], "p")
    second, ctx = ask({"input": [USER, result("c1")], "previous_response_id": first}, [SECOND_CALL], "q")
    assert kinds(ctx) == ["message", "function_call", "function_call_output"]
    assert [change.public()["before"] for change in ctx.receipt.changes if change.action == "dropped"] == ["input[0]"]
    again = {"input": [USER, result("c1"), result("c2")], "previous_response_id": second}
    third, ctx = ask(again, [MESSAGE], "p")
    calls = ["function_call", "function_call_output"]
    assert kinds(ctx) == ["message", *calls, *calls]
    assert ctx.receipt.unmap(("input", 4, "output")) == ("input", 2, "output")
    assert ctx.receipt.losses == []
    _, ctx = ask({"input": [result("c1"), result("c2"), USER], "previous_response_id": third}, [MESSAGE], "p")
    assert kinds(ctx) == ["message", *calls, *calls, "message", "message"]


def test_a_second_result_that_differs_and_a_message_said_twice_stay(ask: Ask) -> None:
    first, _ = ask({"input": [USER]}, [CALL], "p")
    second, _ = ask({"input": [result("c1")], "previous_response_id": first}, [MESSAGE], "p")
    again = {"input": [USER, result("c1", "rainy")], "previous_response_id": second}
    _, ctx = ask(again, [MESSAGE], "p")
    assert kinds(ctx)[-2:] == ["message", "function_call_output"]
    _, ctx = ask({"input": [USER], "previous_response_id": second}, [MESSAGE], "p")
    assert kinds(ctx)[-1] == "message" and len(kinds(ctx)) == 5


PATCH = {"type": "apply_patch_call", "id": "apc_1", "call_id": "p1", "status": "completed", "operation": {}}
SHELL = {"type": "local_shell_call", "id": "lsh_1", "call_id": "s1", "status": "in_progress", "action": {}}
PATCHED = {"type": "apply_patch_call_output", "call_id": "p1", "status": "completed"}
RAN = {"type": "local_shell_call_output", "id": "s1", "output": "ok"}


def test_calls_of_tools_that_the_client_runs_need_their_results(ask: Ask) -> None:
    first, _ = ask({"input": [USER]}, [PATCH, SHELL], "p")
    for missing in ([], [PATCHED], [RAN]):
        with pytest.raises(Fault, match="has no output in input"):
            ask({"input": [USER, *missing], "previous_response_id": first}, [MESSAGE], "p")
    second, ctx = ask({"input": [PATCHED, RAN], "previous_response_id": first}, [MESSAGE], "q")
    results = ["apply_patch_call_output", "local_shell_call_output"]
    assert kinds(ctx) == ["message", "apply_patch_call", "local_shell_call", *results]
    _, ctx = ask({"input": [PATCHED, RAN, USER], "previous_response_id": second}, [MESSAGE], "q")
    assert kinds(ctx)[-2:] == ["message", "message"]


def test_a_result_of_a_tool_that_the_client_runs_answers_a_call(ask: Ask) -> None:
    first, _ = ask({"input": [USER]}, [MESSAGE], "p")
    with pytest.raises(Fault, match="answers no call"):
        ask({"input": [PATCHED], "previous_response_id": first}, [MESSAGE], "p")


def test_a_shell_in_a_container_needs_no_result(ask: Ask) -> None:
    call = {"type": "shell_call", "id": "sh_1", "call_id": "h", "status": "completed", "action": {"commands": ["ls"]}}
    hosted = {**call, "environment": {"type": "container_reference", "container_id": "c"}}
    first, _ = ask({"input": [USER]}, [hosted, MESSAGE], "p")
    _, ctx = ask({"input": [USER], "previous_response_id": first}, [MESSAGE], "p")
    assert kinds(ctx)[-1] == "message"


def test_a_patch_that_was_cut_off_is_left_out(ask: Ask) -> None:
    first, _ = ask({"input": [USER]}, [MESSAGE, {**PATCH, "status": "incomplete"}], "p")
    _, ctx = ask({"input": [USER], "previous_response_id": first}, [], "p")
    assert kinds(ctx) == ["message"] * 3


def test_ids_of_items_name_their_response_and_ids_that_providers_see_do_not(ask: Ask) -> None:
    response_id, ctx = ask({"input": "one"}, [], "p")
    made = [ctx.new_id(prefix) for prefix in ("msg", "fc", "rs", "ctc", *["msg"] * 300)]
    assert len({item_id.partition("_")[2] for item_id in made}) == len(made)
    assert {find_response_id(item_id) for item_id in made} == {response_id}
    assert all(len(item_id) <= 64 for item_id in made)
    for prefix in ("call", "ws", "resp"):
        assert response_id[5:] not in ctx.new_id(prefix)


@pytest.mark.parametrize("digits", [32, 44])
@pytest.mark.parametrize("number", [0, 255, 256, 99_999])
def test_ids_of_items_name_responses_of_this_version_and_of_earlier_ones(digits: int, number: int) -> None:
    response_id = "resp_" + "9af0" * (digits // 4)
    assert find_response_id(new_item_id(response_id, "msg", number)) == response_id


@pytest.mark.parametrize("item_id", ["", "msg_1", f"msg_{'0' * 32}", f"call_{'0' * 34}", f"msg_{'0' * 34}\n", "\ud800"])
def test_no_other_id_names_a_response(item_id: str) -> None:
    assert find_response_id(item_id) is None


@pytest.mark.parametrize("store", [True, False])
def test_each_event_of_a_stream_shows_its_own_response(store: bool) -> None:
    """The first events mostly share an object, which is changed once."""
    request: JsonObject = {"model": "m", "input": "hi", "store": store}
    begun: JsonObject = {"id": "resp_theirs", "store": None, "status": "in_progress"}
    responses = [begun, begun, {**begun}, {**begun, "status": "completed"}, begun]
    conversation, receipt, expected = Conversation(request, has_store=True, can_retrieve=True), Receipt(), Receipt()
    outputs = [Chunk({"type": "response.created", "response": one, "n": n}) for n, one in enumerate(responses)]
    shown = [conversation.replace_fields(one, receipt) for one in outputs]
    wanted = [conversation.with_store_fields(one, expected) for one in responses]
    assert shown == [Chunk({**one.body, "response": made}) for one, made in zip(outputs, wanted, strict=True)]
    assert receipt.changes == expected.changes


def test_what_is_replaced_in_every_event_is_recorded_once_in_each_receipt() -> None:
    conversation = Conversation({"model": "m"}, has_store=True, can_retrieve=True)
    first, second = Receipt(), Receipt()
    for receipt in (first, second, first):
        for number in range(20):
            conversation.with_store_fields({"id": "theirs", "store": False, "created_at": number}, receipt)
    assert {change.before for change in first.changes} == {("id",), ("store",)}
    assert first.changes == second.changes

    conversation.with_store_fields({"id": "theirs", "store": True, "previous_response_id": "theirs"}, second)
    assert [change.before for change in second.changes[2:]] == [("previous_response_id",)]
