"""Reading a provider's whole response into hub form."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.chat.reply import judge_natively
from dragoman.adapters.common.completeness import check_status
from dragoman.adapters.common.repair import repair
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.counts import is_count, is_time
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.validation import Judge, Violation, judge
from dragoman.schemas import load

from .base import FAILURES, in_progress, whole_settings
from .filling import fill_item

__all__ = ["hub_response", "hub_responses_usage", "read_response"]

_FLAT = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


def read_response(reply: Reply, reading: Reading, ctx: Context) -> JsonObject:
    """The response in hub form, as the policy `replies` asks. Alters and returns `reply.body`.

    Raises Fault: an error where a response should be, a response that has not ended, or one that can't be mended.
    """
    body, mode = reply.body, ctx.target.policy.replies
    if "output" not in body and "status" not in body:
        raise read_error_object(body, reply.status, reading.words)
    check_status(body)
    if mode in ("strict", "report"):
        judge_natively(body, judge(f"{reading.dialect}/responses.reply", ctx.profile), ctx)
    if mode in ("off", "report"):
        return body
    if reading.mend is not None:
        reading.mend({"response": body})
    _fill_status(body, ctx)
    body = hub_response(body, ctx)
    rules = judge("hub/responses.reply")
    violation = None if rules.ok(body) else _repair(body, rules, ctx)
    if violation is not None:
        text = f"the provider sent a response that is not valid: {violation.message}"
        raise Fault("upstream_invalid_response", text, code="upstream_invalid_response")
    return body


def _fill_status(body: JsonObject, ctx: Context) -> None:
    """Agents on Databricks leave the status out of a response; it came whole, and tells of no error."""
    if not body.get("status"):
        body["status"] = "incomplete" if body.get("incomplete_details") else "completed"
        ctx.receipt.filled(("status",), "the provider gave none")


def _repair(body: JsonObject, rules: Judge, ctx: Context) -> Violation | None:
    """Alter the response until the rules accept it; the violation that stands in the way, or None."""
    output = body.get("output")
    for item in output if isinstance(output, list) else ():
        fill_item(item, ctx)
    return repair(body, rules)


def hub_response(body: JsonObject, ctx: Context) -> JsonObject:
    """A provider's response object with every key that the hub's has: what it left out is what the request said. One
    that tells of an error has failed."""
    created = body.get("created_at")
    base = in_progress(
        ctx.request,
        body.get("id") or ctx.new_id("resp"),
        body.get("model") or ctx.target.model,
        int(created) if is_time(created) else int(ctx.clock()),
    )
    missing = [key for key in base if body.get(key) is None and base[key] is not None]
    if missing:
        ctx.receipt.filled(("output",), f"the provider said nothing of {', '.join(sorted(missing))}")
    made = {**base, **{key: value for key, value in body.items() if value is not None}}
    whole_settings(made)
    made["created_at"] = base["created_at"]
    made["usage"] = hub_responses_usage(body.get("usage"))
    failed = str(made["status"]) in FAILURES
    if made["status"] == "failed" and made["error"] is None:
        made["error"] = {}
    if isinstance(made["error"], dict):
        made["error"] = _error(made["error"]) if made["error"] or failed else None
    if made["error"] and not failed:
        ctx.receipt.converted(("status",), f"{made['status']!r} reads 'failed': the response tells of an error")
        made["status"] = "failed"
    return made


def _error(error: JsonObject) -> JsonObject:
    """A failure in the words of OpenAI's response object; a word that it does not have stays in `native_code`."""
    made = {**error, "message": error.get("message") or "the provider told no reason"}
    code = error.get("code")
    if code not in load("hub/responses.reply")["properties"]["error"]["properties"]["code"]["enum"]:
        made["code"] = "server_error"
        if code is not None:
            made["native_code"] = str(code)
    return made


def hub_responses_usage(usage: Any) -> JsonObject | None:
    """The usage under the names of Responses, details included, from either vocabulary."""
    if not isinstance(usage, dict):
        return None
    named: JsonObject = {_FLAT.get(key, str(key)): value for key, value in usage.items() if value is not None}
    read, written, total = (named.get(f"{what}_tokens") for what in ("input", "output", "total"))
    if not is_count(read) or not is_count(written):
        return None
    thought = named.pop("reasoning_tokens", None)
    return {
        **named,
        "input_tokens": int(read),
        "input_tokens_details": _details(named, "input_tokens_details", cached_tokens=0, cache_write_tokens=0),
        "output_tokens": int(written),
        "output_tokens_details": _details(named, "output_tokens_details", reasoning_tokens=thought),
        "total_tokens": int(total) if is_count(total) else int(read + written),
    }


def _details(usage: JsonObject, name: str, **unless_told: Any) -> JsonObject:
    """The details, with a count under each of these names."""
    given = usage.get(name)
    details = given if isinstance(given, dict) else {}
    told = {**unless_told, **{key: value for key, value in details.items() if value is not None}}
    return {key: value if key not in unless_told or is_count(value) else 0 for key, value in told.items()}
