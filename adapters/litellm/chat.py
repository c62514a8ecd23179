"""Chat over litellm: OpenAI's form, with the hub's parameters only."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.called import chat_called
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.request_properties import HUB_CHAT

from .addresses import refuse_addresses
from .parameters import drop_unknown_parameters

__all__ = ["CALLED"]

REPLY_RULES = ReplyRules("openai")


def _rewrite(body: JsonObject, ctx: Context) -> None:
    body.pop("stream_options", None)
    refuse_addresses(body)
    drop_unknown_parameters(body, ctx, HUB_CHAT)
    if body.get("stream") is True:
        body["stream_options"] = {"include_usage": True}


CALLED = chat_called(REPLY_RULES, rewrite=_rewrite, extras="keep-extensions")
