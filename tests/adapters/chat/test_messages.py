from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Call, Context
from dragoman.adapters.changes import Receipt
from dragoman.adapters.chat.messages import (
    drop_known_tool_names,
    join_text_parts,
    merge_system_messages,
    order_tool_results,
    rename_developer_role,
)
from tests.adapters.conftest import MakeContext

ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool"])
MESSAGES = st.lists(ROLES, min_size=1, max_size=8).map(
    lambda roles: [{"role": role, "content": f"text {i}"} for i, role in enumerate(roles)]
)


def fresh() -> Context:
    return Context("actual", Call("POST", "/", {}), Receipt())


def test_calls_that_a_dialect_does_not_check_name_no_tool() -> None:
    """MindIE's documents do not say what a call is."""
    said = {"role": "assistant", "tool_calls": [{"id": "a", "function": "f"}, {"id": "b"}]}
    messages = [said, {"role": "tool", "tool_call_id": "a", "name": "f"}]
    assert drop_known_tool_names(messages, fresh()) == messages


@given(MESSAGES)
def test_system_first_loses_no_text_and_every_path_leads_back(messages: list[dict[str, str]]) -> None:
    ctx, before = fresh(), copy.deepcopy(messages)
    after = merge_system_messages(messages, ctx)
    assert messages == before
    assert all(message["role"] not in ("system", "developer") for message in after[1:])
    texts = "\n\n".join(message["content"] for message in after).split("\n\n")
    assert sorted(texts) == sorted(message["content"] for message in before)
    for i, message in enumerate(after):
        _, original = ctx.receipt.unmap(("messages", i))
        assert isinstance(original, int)
        assert message["content"].startswith(before[original]["content"])


def test_system_first_keeps_the_order_of_the_others(context: MakeContext) -> None:
    ctx = context()
    messages = [{"role": "user", "content": "a"}, {"role": "system", "content": "s"}, {"role": "user", "content": "b"}]
    assert [m["content"] for m in merge_system_messages(messages, ctx)] == ["s", "a", "b"]
    assert [change.public()["action"] for change in ctx.receipt.changes] == ["moved"]
    assert not ctx.receipt.losses


def test_merging_a_named_system_message_tells_what_is_lost(context: MakeContext) -> None:
    ctx = context()
    merge_system_messages([{"role": "system", "content": "a"}, {"role": "system", "content": "b", "name": "n"}], ctx)
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["messages[1].name"]


def test_merging_marked_system_messages_tells_which_marks_are_lost(context: MakeContext) -> None:
    marked = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}, "citations": None}]
    ask = {"role": "user", "content": "x"}
    ctx = context()
    head, _ = merge_system_messages([{"role": "system", "content": marked}, ask], ctx)
    assert head["content"] == marked and not ctx.receipt.losses
    head, _ = merge_system_messages([*({"role": "system", "content": marked} for _ in range(2)), ask], ctx)
    assert head["content"] == "a\n\na"
    lost = [change.public()["before"] for change in ctx.receipt.losses]
    assert lost == [f"messages[{i}].content[0].cache_control" for i in range(2)]


def call(*ids: str) -> dict[str, object]:
    return {"role": "assistant", "tool_calls": [{"id": one} for one in ids]}


def result(call_id: str, content: str = "") -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_results_follow_their_calls_in_the_order_of_the_calls(context: MakeContext) -> None:
    ctx = context()
    messages = [call("a", "b"), {"role": "user"}, result("b"), result("a")]
    after = order_tool_results(messages, ctx)
    assert after == [call("a", "b"), result("a"), result("b"), {"role": "user"}]
    assert [ctx.receipt.unmap(("messages", i))[1] for i in range(4)] == [0, 3, 2, 1]


def test_results_in_order_are_left_alone(context: MakeContext) -> None:
    ctx = context()
    messages = [call("a"), result("a"), call("a"), result("a", "second")]
    assert order_tool_results(messages, ctx) is messages
    assert not ctx.receipt.changes


def test_an_orphan_stays_where_it_is(context: MakeContext) -> None:
    messages = [{"role": "user"}, result("nobody"), {"role": "user"}]
    assert order_tool_results(messages, context()) is messages


@given(st.lists(st.sampled_from(["user", "call", "result"]), max_size=8), st.randoms())
def test_results_after_calls_only_permutes(kinds: list[str], random: object) -> None:
    messages = [{"user": {"role": "user"}, "call": call("a", "b"), "result": result("a")}[kind] for kind in kinds]
    ctx = fresh()
    after = order_tool_results(messages, ctx)
    assert sorted(map(repr, after)) == sorted(map(repr, messages))
    assert [messages[ctx.receipt.unmap(("messages", i))[1]] for i in range(len(after))] == after  # type: ignore[index]


def test_text_parts_become_one_string_and_others_stay(context: MakeContext) -> None:
    ctx = context()
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "user", "content": texts}, {"role": "user", "content": [*texts, image]}]
    after = join_text_parts(messages, ctx)
    assert after == [{"role": "user", "content": "ab"}, messages[1]]
    assert [change.public()["before"] for change in ctx.receipt.changes] == ["messages[0].content"]


def test_developer_becomes_system(context: MakeContext) -> None:
    ctx = context()
    messages = [{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}]
    assert rename_developer_role(messages, ctx)[0] == {"role": "system", "content": "d"}
    assert messages[0]["role"] == "developer"
    assert [change.public()["before"] for change in ctx.receipt.changes] == ["messages[0].role"]
