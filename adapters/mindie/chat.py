"""The mindie dialect of chat.

In a reply with status 200, the finish reason `stop_sequence` means that the request was cancelled, failed or was
rejected. It is read as a fault, unless the request had stop strings, which the `documented` profile does not support.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.changes import Weight
from dragoman.adapters.chat.called import chat_called
from dragoman.adapters.chat.messages import (
    convert_refusals,
    drop_silent_answers,
    join_text_parts,
    rename_developer_role,
)
from dragoman.adapters.common.parameters import drop_stream_options
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.token_limits import TokenLimitRule
from dragoman.adapters.faults import Fault
from dragoman.adapters.fit import is_taken
from dragoman.adapters.validation import load_validator

from .faults import WORDS
from .text_length import check_length

__all__ = ["CALLED"]


def _read_stop_sequence(body: JsonObject, choice: JsonObject, ctx: Context) -> str:
    if ctx.profile != "documented" and (ctx.request.get("stop") or ctx.request.get("stop_token_ids")):
        return "stop"
    text: Any = choice.get("err_msg") or body.get("err_msg")
    why = f": {text[:500]}" if isinstance(text, str) else ""
    raise Fault(
        "upstream_invalid_response",
        f"the server ended the request with stop_sequence: it was cancelled, failed or was rejected{why}",
        code="upstream_aborted",
        provider_code="stop_sequence",
    )


REPLY_RULES = ReplyRules("mindie", words=WORDS, finish={"stop_sequence": _read_stop_sequence})


def _rewrite(body: JsonObject, ctx: Context) -> None:
    rules = load_validator("mindie/chat.request", ctx.profile)
    drop_stream_options(body, ctx)
    if "chat_template_kwargs" in rules.known:
        _write_thinking(body, ctx)
    messages = rename_developer_role(drop_silent_answers(body["messages"], ctx), ctx)
    body["messages"] = join_text_parts(convert_refusals(messages, ctx), ctx)
    check_length(body["messages"], rules, "unsupported_parameter")


def _write_thinking(body: JsonObject, ctx: Context) -> None:
    """Turn reasoning effort into thinking or not thinking, unless the client set that itself."""
    effort, given = body.get("reasoning_effort"), body.get("chat_template_kwargs") or {}
    if effort is None or not isinstance(given, dict) or is_taken("reasoning_effort", ctx):
        return
    del body["reasoning_effort"]
    after = ("chat_template_kwargs", "enable_thinking")
    weight: Weight = "form" if effort == "none" else "loss"
    ctx.receipt.record_conversion(("reasoning_effort",), "the server can only switch thinking on or off", weight, after)
    body["chat_template_kwargs"] = {"enable_thinking": effort != "none", **given}


CALLED = chat_called(REPLY_RULES, token_limit=TokenLimitRule(), rewrite=_rewrite, path="/v1/chat/completions")
