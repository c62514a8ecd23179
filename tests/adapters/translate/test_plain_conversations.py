"""Conversations of nothing but texts: the short way of translating them has the result of the long way."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.chat.messages import PlainMessages, are_plain, put_instructions_first
from dragoman.adapters.paths import Path
from dragoman.adapters.translate import messages, turns_to_chat

Convert = Callable[[Context], list[JsonObject]]

TEXTS = st.sampled_from(["", "hi", "so"])
OTHER: list[JsonObject] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def list_turns(*roles: str) -> st.SearchStrategy[list[JsonObject]]:
    plain = st.fixed_dictionaries({"role": st.sampled_from(roles), "content": TEXTS})
    other = st.fixed_dictionaries({"role": st.sampled_from(roles), "content": st.just(OTHER)})
    return st.lists(st.one_of(plain, plain, plain, other), max_size=6)


def convert(call: Convert) -> object:
    """The messages, what the receipt says, and where each path in them comes from."""
    receipt = Receipt()
    made = call(Context("actual", Call("POST", "/", {}), receipt))
    places: list[Path] = [("messages",), ("tools", 0), ("messages", len(made))]
    for i, message in enumerate(made):
        places += [("messages", i), *(("messages", i, key) for key in sorted(message))]
    return made, receipt.changes, [receipt.unmap(place) for place in places]


def compare_ways(call: Convert, module: ModuleType) -> None:
    short = convert(call)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "are_plain_turns", lambda _: False)
        assert convert(call) == short


@given(st.sampled_from([None, "", "Be brief.", OTHER]), list_turns("user", "assistant", "system"))
def test_turns_of_texts_are_messages_of_chat(system: Any, turns: list[JsonObject]) -> None:
    before = deepcopy(turns)
    compare_ways(lambda ctx: turns_to_chat.turns_to_chat(system, turns, ctx), turns_to_chat)
    assert turns == before


@given(list_turns("user", "assistant", "system", "developer"))
def test_items_of_texts_are_messages_of_chat(items: list[JsonObject]) -> None:
    before = deepcopy(items)
    compare_ways(lambda ctx: messages.to_messages(items, ctx), messages)
    assert items == before


@given(list_turns("user", "assistant"), st.sampled_from(["", "Be brief.", None, OTHER]))
def test_messages_that_are_said_to_be_plain_are_plain(turns: list[JsonObject], system: Any) -> None:
    ctx = Context("actual", Call("POST", "/", {}), Receipt())
    made = [messages.to_messages(turns, ctx), turns_to_chat.turns_to_chat(system, turns, ctx)]
    for one in [*made, *(put_instructions_first(system, one) for one in made)]:
        assert type(one) is not PlainMessages or are_plain([*one])


def test_plain_turns_are_not_looked_through_again() -> None:
    ctx = Context("actual", Call("POST", "/", {}), Receipt())
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "so"}]
    assert type(messages.to_messages(turns, ctx)) is PlainMessages
    assert type(turns_to_chat.turns_to_chat("Be brief.", turns, ctx)) is PlainMessages
