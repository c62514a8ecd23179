"""What holds for every request that is translated between Messages and chat or Responses, and back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import takewhile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.adapters.call import Context
from dragoman.adapters.paths import Path
from dragoman.adapters.translate.message_requests import (
    messages_to_chat_request,
    messages_to_full_chat_request,
    to_messages_request,
)
from dragoman.adapters.translate.requests import to_full_chat_request, to_responses_request
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject

from .message_conversations import (
    CLAUDE,
    chat_requests,
    list_tokens,
    make_context,
    message_requests,
    to_plain_messages,
    without,
)

GENERIC: set[Path] = {("messages",), ("tools",), ("system",), ("input",)}
"""Changes that only say that a list has another form: they name nothing that is missing."""


def translate(request: JsonObject, protocol: str, model: str = CLAUDE) -> Context:
    """The context with a valid request of the other protocol; the client's is not altered."""
    before, ctx = copy.deepcopy(request), make_context(request, model)
    made = ctx._replace(request=TRANSLATIONS[protocol](request, ctx))
    to = protocol.split()[-1]
    assert [one.message for one in load_validator(f"hub/{to}.request").violations(made.request)] == []
    assert request == before, "the client's request was altered"
    return made


def _to_responses(request: JsonObject, ctx: Context) -> JsonObject:
    return to_responses_request(messages_to_full_chat_request(request, ctx), ctx)


def _from_responses(request: JsonObject, ctx: Context) -> JsonObject:
    return to_messages_request(to_full_chat_request(request, ctx), ctx)


TRANSLATIONS: dict[str, Callable[[JsonObject, Context], JsonObject]] = {
    "messages to chat": messages_to_chat_request,
    "messages to responses": _to_responses,
    "chat to messages": to_messages_request,
    "responses to messages": _from_responses,
}


def hold(requests: st.SearchStrategy[JsonObject], law: Callable[[JsonObject], None]) -> None:
    settings(suppress_health_check=[*HealthCheck])(given(requests)(law))()


@pytest.mark.parametrize("other", ["chat", "responses"])
def test_there_and_back_a_request_is_the_same_but_for_the_losses_in_the_receipt(other: str) -> None:
    def law(request: JsonObject) -> None:
        there = translate(request, f"messages to {other}")
        back = translate(there.request, f"{other} to messages")
        assert back.receipt.losses == [], "Messages can say again what the other protocol could"
        kept = without(request, there.receipt.losses)
        assert to_plain_messages(back.request) == to_plain_messages(kept)

    hold(message_requests(), law)


def test_a_chat_request_comes_back_the_same() -> None:
    def law(request: JsonObject) -> None:
        there = translate(request, "chat to messages")
        back = translate(there.request, "messages to chat")
        assert (there.receipt.losses, back.receipt.losses) == ([], [])
        plain = {**request, "stream_options": {"include_usage": True}} if request.get("stream") else request
        assert to_plain_chat(back.request) == to_plain_chat(plain)

    hold(chat_requests(), law)


def to_plain_chat(request: JsonObject) -> JsonObject:
    made = copy.deepcopy(request)
    for message in made["messages"]:
        content = message["content"]
        if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
            message["content"] = content[0]["text"]
    if made.get("tool_choice", "auto") == "auto":
        made.pop("tool_choice", None)
    if made.get("tool_choice") == "none":
        made.pop("parallel_tool_calls", None)
    return made


@pytest.mark.parametrize("direction", ["messages to chat", "messages to responses", "chat to messages"])
@pytest.mark.parametrize("model", [CLAUDE, "other"])
def test_what_does_not_arrive_is_named_and_what_does_is_traced_back(model: str, direction: str) -> None:
    def law(request: JsonObject) -> None:
        made = translate(request, direction, model)
        changed = {change.before for change in made.receipt.changes} - GENERIC
        arrived = dict(list_tokens(made.request))
        for token, path in list_tokens(request):
            if token not in arrived:
                assert any(path[: len(before)] == before for before in changed if before), (token, path, changed)
                continue
            found = made.receipt.unmap(arrived[token])
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, path, strict=False)))
            assert shared >= min(len(found), len(path) - 1), (arrived[token], found, path)
            assert shared >= (2 if path[0] == "messages" else 1), (arrived[token], found, path)

    source = chat_requests(hard=True) if direction.startswith("chat") else message_requests(hard=True)
    hold(source, law)
