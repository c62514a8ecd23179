"""The table of bridges between a client that speaks one protocol and a provider that speaks another."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.streams import StreamTranslator

from .bridge_interface import Bridge, translate_with
from .chat_to_completions import ChatToCompletions
from .chat_to_messages import ChatToMessages
from .chat_to_responses import ChatToResponses
from .composition import compose
from .message_replies import message_to_chat_reply, to_message
from .message_requests import messages_to_chat_request, messages_to_full_chat_request, to_messages_request
from .messages_to_chat import MessagesToChat
from .prompt_batching import BATCHING
from .prompts import prompt_to_chat_request, to_text_reply
from .replies import to_chat_reply, to_responses_reply
from .requests import to_chat_request, to_full_chat_request, to_responses_request
from .responses_to_chat import ResponsesToChat
from .tools import map_tool_names

__all__ = ["BRIDGES", "Bridge"]


def _to_responses_reply(reply: JsonObject, request: JsonObject, ctx: Context) -> JsonObject:
    return to_responses_reply(reply, request, ctx.new_id("resp"), ctx)


def _make_chat_to_responses(request: JsonObject, ctx: Context) -> StreamTranslator:
    created = int(ctx.clock())
    base = new_response(request, ctx.new_id("resp"), ctx.target.model, created)
    return ChatToResponses(base, ctx, summary=ctx.target.summarizes_reasoning, names=map_tool_names(request))


def _to_chat_reply(response: JsonObject, request: JsonObject, ctx: Context) -> JsonObject:
    return to_chat_reply(response, ctx)


def _make_responses_to_chat(request: JsonObject, ctx: Context) -> StreamTranslator:
    return ResponsesToChat(ctx.with_request(request))


def _from_message(reply: JsonObject, request: JsonObject, ctx: Context) -> JsonObject:
    return message_to_chat_reply(reply, ctx)


def _make_messages_to_chat(request: JsonObject, ctx: Context) -> StreamTranslator:
    return MessagesToChat(ctx.with_request(request))


def _make_chat_to_completions(request: JsonObject, ctx: Context) -> StreamTranslator:
    return ChatToCompletions(ctx)


_RESPONSES_TO_CHAT = Bridge(
    "chat",
    translate_with(to_chat_request),
    _to_responses_reply,
    _make_chat_to_responses,
    needs_first_choice=True,
    full_request=translate_with(to_full_chat_request),
)
_CHAT_TO_RESPONSES = Bridge("responses", translate_with(to_responses_request), _to_chat_reply, _make_responses_to_chat)
_COMPLETIONS_TO_CHAT = Bridge(
    "chat", translate_with(prompt_to_chat_request), to_text_reply, _make_chat_to_completions, BATCHING
)

_MESSAGES_TO_CHAT = Bridge(
    "chat",
    translate_with(messages_to_chat_request),
    to_message,
    ChatToMessages,
    needs_first_choice=True,
    full_request=translate_with(messages_to_full_chat_request),
)
_CHAT_TO_MESSAGES = Bridge("messages", translate_with(to_messages_request), _from_message, _make_messages_to_chat)

BRIDGES: Mapping[str, tuple[Bridge, ...]] = {
    "responses": (_RESPONSES_TO_CHAT, compose(_RESPONSES_TO_CHAT, _CHAT_TO_MESSAGES)),
    "chat": (_CHAT_TO_RESPONSES, _CHAT_TO_MESSAGES),
    "messages": (_MESSAGES_TO_CHAT, compose(_MESSAGES_TO_CHAT, _CHAT_TO_RESPONSES)),
    "completions": (
        _COMPLETIONS_TO_CHAT,
        compose(_COMPLETIONS_TO_CHAT, _CHAT_TO_RESPONSES),
        compose(_COMPLETIONS_TO_CHAT, _CHAT_TO_MESSAGES),
    ),
}
"""For each protocol of a client, the bridges to other protocols, in order of preference."""
