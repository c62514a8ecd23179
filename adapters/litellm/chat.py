"""Chat over litellm: OpenAI's form, closed."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.called import chat_called
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.fit import HUB_CHAT

from .addresses import refuse_addresses
from .closed import close

__all__ = ["CALLED"]

READING = Reading("openai")


def _rewrite(body: JsonObject, ctx: Context) -> None:
    body.pop("stream_options", None)
    refuse_addresses(body)
    close(body, ctx, HUB_CHAT)
    if body.get("stream") is True:
        body["stream_options"] = {"include_usage": True}


CALLED = chat_called(READING, rewrite=_rewrite, extras="keep-extensions")
