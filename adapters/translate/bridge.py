"""Bridges translate between a client that speaks one protocol and a provider that speaks another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.emulation.interface import Emulation
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.streams import StreamTranslator

from .chat_to_completions import ChatToCompletions
from .chat_to_responses import ChatToResponses
from .prompt_batching import BATCHING
from .prompts import prompt_to_chat_request, to_text_reply
from .replies import to_chat_reply, to_responses_reply
from .requests import to_chat_request, to_responses_request
from .responses_to_chat import ResponsesToChat
from .tools import map_tool_names

__all__ = ["BRIDGES", "Bridge"]


@dataclass(frozen=True, slots=True)
class Bridge:
    """The translation to one other protocol, all in hub form.

    `called` is the protocol that the provider speaks. `request` translates the client's request, `reply` a whole reply,
    and `stream` makes a translator of streams; the last two also get the client's request. All get the context of the
    call, and may raise Fault. `batching` is set if one request may need several calls: it splits the client's request,
    and joins replies in the client's protocol. `needs_first_choice`: the client's protocol has only one choice.
    """

    called: str
    request: Callable[[JsonObject, Context], JsonObject]
    reply: Callable[[JsonObject, JsonObject, Context], JsonObject]
    stream: Callable[[JsonObject, Context], StreamTranslator]
    batching: Emulation | None = None
    needs_first_choice: bool = False


def _to_responses_reply(reply: JsonObject, request: JsonObject, ctx: Context) -> JsonObject:
    return to_responses_reply(reply, request, ctx.new_id("resp"), ctx)


def _make_chat_to_responses(request: JsonObject, ctx: Context) -> StreamTranslator:
    created = int(ctx.clock())
    base = new_response(request, ctx.new_id("resp"), ctx.target.model, created)
    return ChatToResponses(base, ctx, summary=ctx.target.summarizes_reasoning, names=map_tool_names(request))


def _to_chat_reply(response: JsonObject, request: JsonObject, ctx: Context) -> JsonObject:
    return to_chat_reply(response, ctx)


def _make_responses_to_chat(request: JsonObject, ctx: Context) -> StreamTranslator:
    return ResponsesToChat(ctx._replace(request=request))


def _make_chat_to_completions(request: JsonObject, ctx: Context) -> StreamTranslator:
    return ChatToCompletions(ctx)


BRIDGES: Mapping[str, tuple[Bridge, ...]] = {
    "responses": (
        Bridge("chat", to_chat_request, _to_responses_reply, _make_chat_to_responses, needs_first_choice=True),
    ),
    "chat": (Bridge("responses", to_responses_request, _to_chat_reply, _make_responses_to_chat),),
    "completions": (Bridge("chat", prompt_to_chat_request, to_text_reply, _make_chat_to_completions, BATCHING),),
}
"""For each protocol of a client, the bridges to other protocols, in order of preference."""
