"""The azure dialect of chat.

Requests have an API version in the query and stop strings as a list. The header `extra-parameters` says what the
service does with keys that its API does not define.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.called import chat_called
from dragoman.adapters.chat.messages import convert_refusals, join_text_parts, rename_developer_role
from dragoman.adapters.common.parameters import clamp_effort
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.token_limits import TokenLimitRule
from dragoman.adapters.validation import load_validator

from .calls import DEFAULT_API_VERSION, choose_extras, create_call_maker
from .faults import WORDS

__all__ = ["CALLED"]

_DEVELOPER_SINCE = "2025"

REPLY_RULES = ReplyRules("azure", words=WORDS)


def _rewrite(body: JsonObject, ctx: Context) -> None:
    clamp_effort(body, load_validator("azure/chat.request", ctx.profile), ctx)
    if isinstance(body.get("stop"), str):
        ctx.receipt.record_conversion(("stop",), "a list of one", after=("stop", 0))
        ctx.receipt.map_paths([(("stop",), ("stop", 0))])
        body["stop"] = [body["stop"]]
    if (ctx.target.api_version or DEFAULT_API_VERSION) < _DEVELOPER_SINCE:
        body["messages"] = rename_developer_role(body["messages"], ctx)
    body["messages"] = join_text_parts(convert_refusals(body["messages"], ctx), ctx)


CALLED = chat_called(
    REPLY_RULES,
    reads_audio=True,
    token_limit=TokenLimitRule(by_model=True),
    rewrite=_rewrite,
    extras=choose_extras,
    takes_effort=True,
    make_call=create_call_maker("/chat/completions"),
)
