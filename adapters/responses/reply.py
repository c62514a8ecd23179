"""Reads a provider's whole response into hub form."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.common.completeness import check_status
from dragoman.adapters.common.repair import REPAIRED, repair
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.reply_validation import find_error, validate_natively
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.validation import load_validator

from .endings import normalize_status
from .filling import HUB_FORMS, fill_output
from .normalizer import normalize_response

__all__ = ["read_response"]


def read_response(reply: Reply, rules: ReplyRules, ctx: Context) -> JsonObject:
    """Read a response into hub form, as the policy `replies` requires. Alters `reply.body`.

    Raises Fault if the body reports an error, if the response has not ended, or if it cannot be normalized.
    """
    body, mode = reply.body, ctx.target.policy.replies
    if "output" not in body and body.get("object") != "response":
        error = find_error(body)
        if error is not None or "status" not in body:
            raise read_error_object(error or body, reply.status, rules.words, ctx.clock())
    check_status(body)
    if mode in ("strict", "report"):
        validate_natively(body, load_validator(f"{rules.dialect}/responses.reply", ctx.profile), ctx)
    if mode in ("off", "report"):
        return body
    if rules.to_hub_forms is not None:
        _convert_forms(body, rules.to_hub_forms, ctx)
    _fill_status(body, ctx)
    body = normalize_response(body, ctx)
    hub = load_validator("hub/responses.reply")
    if not hub.accepts(body):
        _repair(body, ctx)
    return body


def _convert_forms(body: JsonObject, to_hub_forms: Callable[[JsonObject], bool], ctx: Context) -> None:
    given = dict(body)
    if to_hub_forms({"response": body}):
        for key in [key for key, value in given.items() if body[key] is not value]:
            ctx.receipt.record_conversion((key,), HUB_FORMS)


def _fill_status(body: JsonObject, ctx: Context) -> None:
    """Fill a missing status, which agents on Databricks omit from complete responses, and convert an unknown one.

    Raises Fault for an unknown one if the policy is `strict`.
    """
    if not body.get("status"):
        body["status"] = "incomplete" if body.get("incomplete_details") else "completed"
        ctx.receipt.record_fill(("status",), "the provider gave none")
    normalize_status(body, ctx)


def _repair(body: JsonObject, ctx: Context) -> None:
    """Repair the response in place until the hub's schema accepts it. Raises Fault if it cannot be repaired."""
    before = orjson.dumps(body.get("output"))
    fill_output(body, ctx)
    violation = repair(body, load_validator("hub/responses.reply"))
    if violation is not None:
        text = f"the provider sent an invalid response: {violation.message}"
        raise Fault("upstream_invalid_response", text, code="upstream_invalid_response")
    if orjson.dumps(body["output"]) != before:
        ctx.receipt.record_conversion(("output",), REPAIRED)
