"""The azure dialect of chat.

Requests: an API version in the query; `extra-parameters` says what the service shall do with keys that its API does
not define; stop strings as a list.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.called import chat_called
from dragoman.adapters.chat.messages import developer_to_system, join_text, refusals_as_text
from dragoman.adapters.common.parameters import nearest_effort, token_limit
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.validation import judge

from .calls import DEFAULT_API_VERSION, call_maker, extras_of
from .faults import WORDS

__all__ = ["CALLED"]

_DEVELOPER_SINCE = "2025"

READING = Reading("azure", words=WORDS)


def _rewrite(body: JsonObject, ctx: Context) -> None:
    token_limit(body, ctx)
    nearest_effort(body, judge("azure/chat.request", ctx.profile), ctx)
    if isinstance(body.get("stop"), str):
        ctx.receipt.converted(("stop",), "a list of one", after=("stop", 0))
        ctx.receipt.rerouted([(("stop",), ("stop", 0))])
        body["stop"] = [body["stop"]]
    if (ctx.target.api_version or DEFAULT_API_VERSION) < _DEVELOPER_SINCE:
        body["messages"] = developer_to_system(body["messages"], ctx)
    body["messages"] = join_text(refusals_as_text(body["messages"], ctx), ctx)
    if "stream_options" not in ctx.call.body and body.pop("stream_options", None):
        ctx.receipt.dropped(("stream_options",), "the client did not ask for it", "form")


CALLED = chat_called(
    READING, rewrite=_rewrite, extras=extras_of, make_call=call_maker("/chat/completions", "azure/chat.request")
)
