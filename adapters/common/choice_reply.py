"""Reads whole replies with choices, of chat and completions, into hub form."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.validation import load_validator

from .choice_normalizer import ENVELOPE, ChoiceNormalizer
from .completeness import check_finish_reason, check_first_choice, infer_finish_reason
from .repair import REPAIRED, repair
from .reply_rules import ReplyRules
from .reply_validation import find_error, invalid_reply, validate_natively
from .usage import NO_COUNTS, normalize_usage

__all__ = ["read_choices"]


def read_choices(reply: Reply, rules: ReplyRules, ctx: Context, protocol: type[ChoiceNormalizer]) -> JsonObject:
    """Read a reply into hub form, as the policy `replies` requires. Alters and returns `reply.body`.

    Raises Fault if the body or a finish reason reports an error, if the reply is incomplete, or if it cannot be
    normalized.
    """
    body, mode = reply.body, ctx.target.policy.replies
    if protocol.settled is not None and mode == "repair" and _is_settled(body, protocol.settled, rules, ctx):
        check_first_choice(body["choices"], ctx)
        return body
    error = find_error(body)
    if error is not None:
        raise read_error_object(error, reply.status, rules.words, ctx.clock())
    choices = _list_choices(body)
    for position, choice in enumerate(choices):
        failure = rules.find_failure(body, choice, ctx)
        if failure is not None:
            raise failure
        protocol.fill_answer(choice, position, ctx)
    if mode in ("strict", "report"):
        validate_natively(body, load_validator(f"{rules.dialect}/{protocol.protocol}.reply", ctx.profile), ctx)
    if mode in ("off", "report"):
        for position, choice in enumerate(choices):
            protocol.check_answer(choice, position)
            if infer_finish_reason(body, ctx.request) is None:
                check_finish_reason(choice)
            if rules.finish_reason(body, choice, ctx) is None:
                ctx.receipt.violations += 1
        return body
    _normalize(body, choices, ctx, protocol(rules, ctx, ctx.receipt))
    hub = load_validator(f"hub/{protocol.protocol}.reply")
    if not hub.accepts(body):
        violation = repair(body, hub)
        if violation is not None:
            raise invalid_reply(violation.message)
        ctx.receipt.record_conversion(("choices",), REPAIRED)
    check_first_choice(body["choices"], ctx)
    return body


def _is_settled(body: JsonObject, schema: str, rules: ReplyRules, ctx: Context) -> bool:
    """Whether normalizing would leave the reply as it is: most replies of most providers. The schema cannot tell an
    integer from a number such as 1.0."""
    if ctx.target.reasoning_tags or not load_validator(schema).accepts(body):
        return False
    if float in map(type, body.get("usage", {}).values()) or type(body["created"]) is float:
        return False
    return all(rules.is_clear(choice["finish_reason"]) for choice in body["choices"])


def _list_choices(body: JsonObject) -> list[JsonObject]:
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        raise invalid_reply("it has no choices")
    for position, choice in enumerate(choices):
        if not isinstance(choice, dict):
            raise invalid_reply(f"choices[{position}] is not an object")
    return choices


def _normalize(body: JsonObject, choices: list[JsonObject], ctx: Context, normalizer: ChoiceNormalizer) -> None:
    _set_envelope(body, normalizer.make_envelope(body, normalizer.reply_object), ctx)
    if "usage" in body:
        _set_usage(body, ctx)
    for position, choice in enumerate(choices):
        if choice.get("index") is None:
            choice["index"] = position
            ctx.receipt.record_fill(("choices", position, "index"), "the provider gave none")
        normalizer.normalize_whole(body, choice, position)
        if "logprobs" not in choice:
            choice["logprobs"] = None
            ctx.receipt.record_conversion(("choices",), REPAIRED)


def _set_envelope(body: JsonObject, envelope: JsonObject, ctx: Context) -> None:
    if body.items() >= envelope.items() and type(body["created"]) is int:
        return
    for name in ENVELOPE:
        given = body.get(name)
        if given == envelope[name] and type(given) is type(envelope[name]):
            continue
        if name == "object":
            ctx.receipt.record_conversion((name,), "the hub's name for it")
        else:
            record = ctx.receipt.record_conversion if given else ctx.receipt.record_fill
            record((name,), "the provider gave none" + " in whole seconds" * (name == "created"))
        body[name] = envelope[name]


def _set_usage(body: JsonObject, ctx: Context) -> None:
    reported: Any = body["usage"]
    usage = normalize_usage(reported)
    if usage is None:
        del body["usage"]
        if reported is not None:
            ctx.receipt.record_drop(("usage",), NO_COUNTS)
    elif usage != reported:
        body["usage"] = usage
        ctx.receipt.record_conversion(("usage",), "the counts get the hub's names; nulls are removed")
