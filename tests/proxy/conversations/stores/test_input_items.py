"""Pages of `GET /v1/responses/{id}/input_items`."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseItemList

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.proxy.conversations.stores.input_items import list_input_items

NAMED: list[JsonObject] = [{"type": "reasoning", "id": f"rs_{number}", "summary": []} for number in range(25)]


def ids(page: JsonObject) -> list[str]:
    return [item["id"] for item in page["data"]]


def names(*numbers: int) -> list[str]:
    return [f"rs_{number}" for number in numbers]


def test_the_last_twenty_come_first() -> None:
    page = list_input_items("resp_1", NAMED, {})
    assert page["object"] == "list"
    assert ids(page) == names(*range(24, 4, -1))
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("rs_24", "rs_5", True)


@pytest.mark.parametrize(
    ("query", "numbers", "more"),
    [
        ({"limit": "2"}, [24, 23], True),
        ({"limit": "2", "order": "asc"}, [0, 1], True),
        ({"limit": "25"}, list(range(24, -1, -1)), False),
        ({"limit": "100", "order": "asc"}, list(range(25)), False),
        ({"limit": "3", "order": "asc", "after": "rs_1"}, [2, 3, 4], True),
        ({"limit": "3", "after": "rs_3"}, [2, 1, 0], False),
        ({"after": "rs_0"}, [], False),
        ({"limit": "3", "order": "asc", "before": "rs_9"}, [6, 7, 8], True),
        ({"limit": "3", "before": "rs_21"}, [24, 23, 22], False),
        ({"before": "rs_24"}, [], False),
        ({"limit": "2", "order": "asc", "after": "rs_1", "before": "rs_5"}, [2, 3], True),
        ({"order": "asc", "after": "rs_1", "before": "rs_5"}, [2, 3, 4], False),
        ({"order": "asc", "after": "rs_5", "before": "rs_1"}, [], False),
        ({"limit": "1", "include": "message.output_text.logprobs"}, [24], True),
    ],
)
def test_limit_order_and_bounds_select_a_page(query: dict[str, str], numbers: list[int], more: bool) -> None:
    page = list_input_items("resp_1", NAMED, query)
    assert ids(page) == names(*numbers)
    assert page["has_more"] is more
    found = ids(page)
    assert (page["first_id"], page["last_id"]) == ((found[0], found[-1]) if found else (None, None))


@pytest.mark.parametrize(
    ("query", "param", "code", "words"),
    [
        ({"limit": "0"}, "limit", "integer_below_min_value", "expected 1 to 100, got '0'"),
        ({"limit": "-1"}, "limit", "integer_below_min_value", "expected 1 to 100"),
        ({"limit": "101"}, "limit", "integer_above_max_value", "expected 1 to 100"),
        ({"limit": ""}, "limit", "invalid_type", "expected an integer"),
        ({"limit": "1.5"}, "limit", "invalid_type", "expected an integer"),
        ({"limit": " 5"}, "limit", "invalid_type", "expected an integer"),
        ({"limit": "٣"}, "limit", "invalid_type", "expected an integer"),
        ({"limit": "9" * 5000}, "limit", "invalid_type", "9..."),
        ({"order": "ASC"}, "order", "invalid_value", "expected asc or desc, got 'ASC'"),
        ({"after": "rs_99"}, "after", "invalid_value", "no input item with this id"),
        ({"after": ""}, "after", "invalid_value", "no input item with this id"),
        ({"before": "rs_99"}, "before", "invalid_value", "no input item with this id"),
    ],
)
def test_what_is_refused(query: dict[str, str], param: str, code: str, words: str) -> None:
    with pytest.raises(Fault, match="is not valid") as caught:
        list_input_items("resp_1", NAMED, query)
    fault = caught.value
    assert (fault.kind, fault.status, fault.param, fault.code) == ("invalid_request", 400, param, code)
    assert words in fault.message
    assert len(fault.message) < 250


def test_a_response_without_input_has_an_empty_page() -> None:
    page = list_input_items("resp_1", [], {})
    assert page == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


PLAIN: list[JsonObject] = [
    {"role": "developer", "content": "Be brief."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
    {"type": "message", "role": "assistant", "content": "Which town?"},
    {"role": "user", "content": "Oslo", "id": None},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
    {"type": "custom_tool_call", "call_id": "call_2", "name": "look", "input": "x"},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "rain", "status": "incomplete"},
]


def test_items_get_the_fields_that_every_listed_item_has() -> None:
    before = copy.deepcopy(PLAIN)
    page = list_input_items("resp_1", PLAIN, {"order": "asc"})
    ResponseItemList.model_validate(page, strict=True)
    assert before == PLAIN
    assert page["data"][0]["content"] == [{"type": "input_text", "text": "Be brief."}]
    assert page["data"][2]["content"] == [{"type": "output_text", "text": "Which town?", "annotations": []}]
    prefixes = [each.rpartition("_")[0] for each in ids(page)]
    assert prefixes == ["msg", "msg", "msg", "msg", "rs", "fc", "fco", "ctc", "ctco"]
    assert page["data"][-1]["status"] == "incomplete"


def test_made_up_ids_stay_the_same() -> None:
    again = ids(list_input_items("resp_1", PLAIN, {"order": "asc"}))
    assert ids(list_input_items("resp_1", copy.deepcopy(PLAIN), {}))[::-1] == again
    assert len(set(again)) == len(again)
    assert all(len(each) <= 64 for each in again)
    assert not set(again) & set(ids(list_input_items("resp_2", PLAIN, {})))
    assert ids(list_input_items("resp_1", PLAIN, {"order": "asc", "after": again[3]})) == again[4:]


@given(
    given_ids=st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=12),
    limit=st.integers(1, 5),
    order=st.sampled_from(["asc", "desc"]),
)
def test_paging_ends_and_shows_each_item(given_ids: list[str | None], limit: int, order: str) -> None:
    """Also where a client used one id several times."""
    items = [{"role": "user", "content": "Hi", "id": each} for each in given_ids]
    expected = ids(list_input_items("resp_1", items, {"order": order}))
    seen: list[str] = []
    query = {"limit": str(limit), "order": order}
    for _ in range(len(items) + 1):
        page = list_input_items("resp_1", items, query)
        seen += ids(page)
        if not page["has_more"]:
            break
        query["after"] = page["last_id"]
    else:
        pytest.fail("paging did not end")
    assert seen == expected
    assert len(set(seen)) == len(items)
