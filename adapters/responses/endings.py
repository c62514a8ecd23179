"""Brings the statuses of responses and items, and the reasons of incomplete responses, into hub form.

A word of another vendor or protocol means what it means as a finish reason (`finish_words`): the status `stop` is
`completed`, the reason `max_tokens` is `max_output_tokens`, and the status `error` is `failed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.finish_words import Failure, find_ending
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

__all__ = ["STATUSES", "fill_item_status", "has_known_reason", "normalize_reason", "normalize_status"]

STATUSES = frozenset({"completed", "failed", "in_progress", "cancelled", "queued", "incomplete"})
"""The hub's statuses of a response."""

_ITEM_STATUSES = frozenset({"in_progress", "completed", "incomplete"})
_REASONS: Mapping[str, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}
_KNOWN_REASONS = frozenset({*_REASONS.values(), "max_messages", "steered"})


def normalize_status(response: JsonObject, ctx: Context) -> None:
    """Convert the status of a response that has ended in place; a status that nobody knows reads `completed`, a loss.

    Raises Fault for such a status if the policy is `strict`.
    """
    status = response.get("status")
    if not isinstance(status, str) or status in STATUSES:
        return
    ending = find_ending(status)
    if ending is None and ctx.target.policy.replies == "strict":
        text = f"the provider sent a response with an unknown status: {status[:100]!r}"
        raise Fault("upstream_invalid_response", text, code="upstream_invalid_response")
    response["status"] = (
        "failed" if isinstance(ending, Failure) else "incomplete" if ending in _REASONS else "completed"
    )
    weight: Any = "loss" if ending is None else "form"
    ctx.receipt.record_conversion(("status",), f"the status {status[:100]!r} reads {response['status']!r}", weight)


def has_known_reason(response: JsonObject) -> bool:
    """Whether the response gives no reason of its end, or one of OpenAI's."""
    details = response.get("incomplete_details")
    return details is None or details.get("reason") in _KNOWN_REASONS


def normalize_reason(response: JsonObject, ctx: Context) -> None:
    """Convert `incomplete_details` in place. A reason that nobody knows stays; details without a reason are removed."""
    details = response.get("incomplete_details")
    if details is None:
        return
    reason = details.get("reason") if isinstance(details, dict) else None
    place = ("incomplete_details",)
    if not isinstance(reason, str):
        response["incomplete_details"] = None
        ctx.receipt.record_drop(place, "they give no reason", "loss" if details else "form")
    elif reason not in _KNOWN_REASONS:
        ending = find_ending(reason)
        known = _REASONS.get(ending) if isinstance(ending, str) else None
        if known is not None:
            response["incomplete_details"] = {**details, "reason": known}
            ctx.receipt.record_conversion(place, f"the reason {reason[:100]!r} reads {known!r}")


def fill_item_status(item: JsonObject, status: str, path: Path, ctx: Context) -> None:
    """Fill the status of the item at `path` with `status` if it has none, or one that nobody knows, which is a loss."""
    given = item.get("status")
    if isinstance(given, str) and given in _ITEM_STATUSES:
        return
    if given:
        ending = find_ending(str(given))
        fails = given in ("failed", "cancelled") or ending in _REASONS or isinstance(ending, Failure)
        status = "incomplete" if fails else status
        reason = f"the item status {str(given)[:100]!r} reads {status!r}"
        ctx.receipt.record_conversion((*path, "status"), reason, "form" if ending in ("stop", "tool_calls") else "loss")
    item["status"] = status
