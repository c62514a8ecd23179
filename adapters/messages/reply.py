"""Reads a provider's whole message into hub form."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.common.completeness import check_stop_reason
from dragoman.adapters.common.repair import REPAIRED, repair
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.reply_validation import find_error, invalid_reply, validate_natively
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import load_validator

from .blocks import BlockNormalizer, has_calls
from .endings import find_failure, is_known, match_calls, read_stop_reason
from .envelope import make_envelope
from .events import TOOL_USES, new_message
from .inputs import read_input
from .usage import normalize_messages_usage

__all__ = ["read_message"]


def read_message(reply: Reply, rules: ReplyRules, ctx: Context) -> JsonObject:
    """Read a message into hub form, as the policy `replies` requires. Alters `reply.body`.

    Raises Fault if the body reports an error, if the message has no stop reason, or if it cannot be normalized.
    """
    body, mode = reply.body, ctx.target.policy.replies
    if body.get("type") != "message" or "content" not in body:
        error = find_error(body)
        if error is not None or "content" not in body:
            raise read_error_object(error or body, reply.status, rules.words, ctx.clock())
    check_stop_reason(body)
    failure = find_failure(body["stop_reason"])
    if failure is not None:
        raise failure
    if mode in ("strict", "report"):
        validate_natively(body, load_validator(f"{rules.dialect}/messages.reply", ctx.profile), ctx)
    if mode in ("off", "report"):
        ctx.receipt.violations += not is_known(body["stop_reason"])
        return body
    return _normalize(body, ctx)


def _normalize(body: JsonObject, ctx: Context) -> JsonObject:
    made = {**new_message("", ""), **body, **make_envelope(body, ctx.receipt, ctx)}
    made["content"] = _normalize_content(body["content"], ctx)
    word = read_stop_reason(body["stop_reason"], ctx.receipt, ctx)
    made["stop_reason"] = match_calls(word, has_calls(made["content"]), ctx.receipt)
    made["usage"] = normalize_messages_usage(body.get("usage"), ("input_tokens", "output_tokens"), ctx.receipt)
    hub = load_validator("hub/messages.reply")
    if not hub.accepts(made):
        violation = repair(made, hub)
        if violation is not None:
            raise invalid_reply(violation.message)
        ctx.receipt.record_conversion((), REPAIRED)
    return made


def _normalize_content(content: Any, ctx: Context) -> list[Any]:
    """The blocks of a message in hub form; text is one block."""
    if isinstance(content, str) or content is None:
        ctx.receipt.record_conversion(("content",), "text becomes a block", after=("content", 0))
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        raise invalid_reply("content is no list of blocks")
    blocks = BlockNormalizer(ctx.receipt, ctx)
    for index, block in enumerate(content):
        if not isinstance(block, dict):
            raise invalid_reply(f"content[{index}] is no object")
        blocks.normalize(block, index)
        if block.get("type") in TOOL_USES and isinstance(block["input"], str):
            _parse_input(block, ("content", index, "input"), ctx)
    return content


def _parse_input(block: JsonObject, path: Path, ctx: Context) -> None:
    """Replace an input that is JSON text, in place; another text stays, and breaks the schema."""
    found = read_input(block["input"], path, ctx.receipt)
    if found is not None:
        block["input"] = found
        ctx.receipt.record_conversion(path, "the input of a call is an object, not text")
