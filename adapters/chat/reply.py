"""Reading a provider's whole chat reply into hub form, and that of another protocol whose replies have choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.common.completeness import check_finish_reason, check_first_choice
from dragoman.adapters.common.repair import repair
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.common.usage import hub_usage
from dragoman.adapters.counts import is_time
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import Judge, judge

from .annotations import whole_annotations
from .content import flatten_content, rename_reasoning
from .toolcalls import fill_arguments, mend_calls

__all__ = ["Form", "judge_natively", "mend_finish", "read_completion", "read_whole", "reports_error"]

_ERROR_KEYS = ("error_code", "error_type", "detail", "err_msg", "external_model_message")

_MendChoice: TypeAlias = Callable[[JsonObject, JsonObject, int, Reading, Context], None]


@dataclass(frozen=True, slots=True)
class Form:
    """What is a protocol's own in its replies: `kind` is their `object`, `prefix` begins an id that the provider left
    out. `mend_choice` gets (body, choice, position, reading, ctx) and raises Fault."""

    protocol: str
    kind: str
    prefix: str
    mend_choice: _MendChoice


def reports_error(body: JsonObject) -> bool:
    """True for a body that tells of an error, whatever its status said."""
    if body.get("error"):
        return True
    return "choices" not in body and any(key in body for key in _ERROR_KEYS)


def read_completion(reply: Reply, reading: Reading, ctx: Context) -> JsonObject:
    """A chat reply: `read_whole`."""
    return read_whole(reply, reading, ctx, _CHAT)


def read_whole(reply: Reply, reading: Reading, ctx: Context, form: Form) -> JsonObject:
    """The reply in hub form, as the policy `replies` asks. Alters and returns `reply.body`.

    Raises Fault: an error inside a 200, a finish reason that tells of one, or a reply that can't be mended.
    """
    body, mode = reply.body, ctx.target.policy.replies
    if reports_error(body):
        raise read_error_object(body, reply.status, reading.words)
    if mode in ("strict", "report"):
        judge_natively(body, judge(f"{reading.dialect}/{form.protocol}.reply", ctx.profile), ctx)
    if mode in ("off", "report"):
        _look_for_faults(body, reading, ctx)
        return body
    _mend(body, reading, ctx, form)
    hub = judge(f"hub/{form.protocol}.reply")
    if not hub.ok(body):
        violation = repair(body, hub)
        if violation is not None:
            raise _invalid(violation.message)
        ctx.receipt.converted(("choices",), "keys that may be null are filled, nulls that may not be are left out")
    check_first_choice(body["choices"], ctx)
    return body


def judge_natively(body: JsonObject, native: Judge, ctx: Context) -> None:
    """Count violations of the provider's own schema, or, in `strict`, raise the first as a Fault."""
    for violation in () if native.ok(body) else native.violations(body):
        if ctx.target.policy.replies == "strict":
            raise _invalid(violation.message)
        ctx.receipt.violations += 1


def _invalid(message: str) -> Fault:
    text = f"the provider sent a reply that is not valid: {message}"
    return Fault("upstream_invalid_response", text, code="upstream_invalid_response")


def _look_for_faults(body: JsonObject, reading: Reading, ctx: Context) -> None:
    for choice in _choices(body):
        check_finish_reason(choice)
        reading.finish_reason(body, choice, ctx)


def _choices(body: JsonObject) -> list[JsonObject]:
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        raise _invalid("it has no choices")
    for position, choice in enumerate(choices):
        if not isinstance(choice, dict):
            raise _invalid(f"choices[{position}] is no object")
    return choices


def _mend(body: JsonObject, reading: Reading, ctx: Context, form: Form) -> None:
    choices = _choices(body)
    _mend_envelope(body, ctx, form)
    for position, choice in enumerate(choices):
        choice.setdefault("index", position)
        form.mend_choice(body, choice, position, reading, ctx)
        choice.setdefault("logprobs", None)


def _mend_chat(body: JsonObject, choice: JsonObject, position: int, reading: Reading, ctx: Context) -> None:
    if not isinstance(choice.get("message"), dict):
        raise _invalid(f"choices[{position}] has no message")
    _mend_message(choice["message"], ("choices", position, "message"), ctx)
    calls = choice["message"].get("tool_calls")
    mend_finish(body, choice, position, reading, ctx, called=bool(calls))
    if choice["finish_reason"] == "tool_calls" and fill_arguments(calls):
        ctx.receipt.filled(
            ("choices", position, "message", "tool_calls"), "a call without arguments has an empty object"
        )


def _mend_envelope(body: JsonObject, ctx: Context, form: Form) -> None:
    if not body.get("id"):
        body["id"] = ctx.new_id(form.prefix)
        ctx.receipt.filled(("id",), "the provider gave none")
    created = body.get("created")
    if not isinstance(created, int):
        body["created"] = int(created) if is_time(created) else int(ctx.clock())
        ctx.receipt.filled(("created",), "the provider gave none in whole seconds")
    if not body.get("model"):
        body["model"] = ctx.target.model
        ctx.receipt.filled(("model",), "the provider gave none")
    if body.get("object") != form.kind:
        body["object"] = form.kind
        ctx.receipt.converted(("object",), "the hub's name for it")
    if "usage" in body:
        _mend_usage(body, ctx)


def _mend_usage(body: JsonObject, ctx: Context) -> None:
    reported: Any = body["usage"]
    usage = hub_usage(reported)
    if usage is None:
        del body["usage"]
        if reported is not None:
            ctx.receipt.dropped(("usage",), "the counts cannot be known from it")
    elif usage != reported:
        body["usage"] = usage
        ctx.receipt.converted(("usage",), "counts under the hub's names, nulls left out")


def _mend_message(message: JsonObject, path: Path, ctx: Context) -> None:
    if message.get("role") != "assistant":
        message["role"] = "assistant"
        ctx.receipt.filled((*path, "role"), "a reply is the assistant's")
    if isinstance(message.get("content"), list):
        for kind in flatten_content(message):
            ctx.receipt.dropped((*path, "content"), f"content of type {kind} has no place in a chat message")
        ctx.receipt.converted((*path, "content"), "content blocks become text and reasoning_content")
    if rename_reasoning(message):
        ctx.receipt.converted((*path, "reasoning"), "the hub's name for it", after=(*path, "reasoning_content"))
    message.setdefault("content", None)
    message.setdefault("refusal", None)
    if "annotations" in message:
        _mend_annotations(message, path, ctx)
    calls = message.get("tool_calls")
    if calls:
        if isinstance(calls, list) and mend_calls(calls, ctx):
            ctx.receipt.converted((*path, "tool_calls"), "id and type filled, arguments as text")
    elif "tool_calls" in message:
        del message["tool_calls"]
        ctx.receipt.dropped((*path, "tool_calls"), "an empty list", "form")


def _mend_annotations(message: JsonObject, path: Path, ctx: Context) -> None:
    given = message["annotations"]
    message["annotations"] = whole_annotations(given)
    if given and given != message["annotations"]:
        ctx.receipt.dropped((*path, "annotations"), "annotations of kinds that chat has not, or without their place")


def mend_finish(
    body: JsonObject, choice: JsonObject, position: int, reading: Reading, ctx: Context, *, called: bool = False
) -> None:
    """The finish reason in the hub's word; `called` says that the choice has tool calls. Raises Fault."""
    native = check_finish_reason(choice)
    word = reading.finish_reason(body, choice, ctx)
    if word == "stop" and called:
        word = "tool_calls"
    if word != native:
        choice.update(finish_reason=word, native_finish_reason=native)
        ctx.receipt.converted(("choices", position, "finish_reason"), f"{native!r} reads {word!r}")


_CHAT = Form("chat", "chat.completion", "chatcmpl", _mend_chat)
