"""Brings a provider's response objects into hub form: those of whole replies, and those in events of streams."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.usage import NO_COUNTS
from dragoman.adapters.counts import is_count, is_time
from dragoman.schemas import load

from .endings import normalize_reason
from .response_object import FAILURES, fill_settings, new_response

__all__ = ["normalize_response", "normalize_responses_usage"]

_FLAT = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


def normalize_response(body: JsonObject, ctx: Context) -> JsonObject:
    """Make a response object with every key of the hub's. Missing settings are those of the request.

    A response that reports an error gets the status `failed`.
    """
    created = body.get("created_at")
    base = new_response(
        ctx.request,
        body.get("id") or ctx.new_id("resp"),
        body.get("model") or ctx.target.model,
        int(created) if is_time(created) else int(ctx.clock()),
    )
    missing = [key for key in base if body.get(key) is None and base[key] is not None]
    if missing:
        ctx.receipt.record_fill(("output",), f"the provider left out {', '.join(sorted(missing))}")
    made = {**base, **{key: value for key, value in body.items() if value is not None}}
    fill_settings(made)
    for key in ("text", "tools"):
        if made[key] != body.get(key) is not None:
            ctx.receipt.record_conversion((key,), "keys that a response must have are filled")
    normalize_reason(made, ctx)
    made["created_at"] = base["created_at"]
    if created not in (None, made["created_at"]):
        ctx.receipt.record_conversion(("created_at",), "the time of the response in whole seconds")
    made["usage"] = normalize_responses_usage(body.get("usage"))
    _record_usage(body.get("usage"), made["usage"], ctx)
    failed = str(made["status"]) in FAILURES
    if made["status"] == "failed" and made["error"] is None:
        made["error"] = {}
    if isinstance(made["error"], dict):
        made["error"] = _normalize_error(made["error"]) if made["error"] or failed else None
        if made["error"] != body.get("error"):
            ctx.receipt.record_conversion(("error",), "an error has a message and one of OpenAI's codes")
    if made["error"] and not failed:
        ctx.receipt.record_conversion(("status",), f"{made['status']!r} reads 'failed': the response reports an error")
        made["status"] = "failed"
    return made


def _record_usage(given: Any, made: JsonObject | None, ctx: Context) -> None:
    if made is None and given is not None:
        ctx.receipt.record_drop(("usage",), NO_COUNTS)
    elif made != given:
        ctx.receipt.record_conversion(("usage",), "the counts get the hub's names; a missing total is added")


def _normalize_error(error: JsonObject) -> JsonObject:
    """Convert an error to OpenAI's codes; a code that OpenAI does not have moves to `native_code`."""
    made = {**error, "message": error.get("message") or "the provider gave no reason"}
    code = error.get("code")
    if code not in load("hub/responses.reply")["properties"]["error"]["properties"]["code"]["enum"]:
        made["code"] = "server_error"
        if code is not None:
            made["native_code"] = str(code)
    return made


def normalize_responses_usage(usage: Any) -> JsonObject | None:
    """Convert usage, with the names of chat or of Responses, to Responses; None if counts are missing or invalid."""
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
        "input_tokens_details": _complete_details(named, "input_tokens_details", cached_tokens=0, cache_write_tokens=0),
        "output_tokens": int(written),
        "output_tokens_details": _complete_details(named, "output_tokens_details", reasoning_tokens=thought),
        "total_tokens": int(total) if is_count(total) else int(read + written),
    }


def _complete_details(usage: JsonObject, name: str, **defaults: Any) -> JsonObject:
    """The details called `name`, with a count for each of `defaults`."""
    given = usage.get(name)
    details = given if isinstance(given, dict) else {}
    counts = {**defaults, **{key: value for key, value in details.items() if value is not None}}
    return {key: value if key not in defaults or is_count(value) else 0 for key, value in counts.items()}
