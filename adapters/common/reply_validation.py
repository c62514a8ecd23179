"""Checks of whole replies that all protocols share: errors sent as replies, and the provider's own schema."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import Validator

__all__ = ["invalid_reply", "reports_error", "validate_natively"]

_ERROR_KEYS = ("error_code", "error_type", "detail", "err_msg", "external_model_message")


def reports_error(body: JsonObject) -> bool:
    """Whether the body reports an error, whatever the HTTP status was."""
    if body.get("error"):
        return True
    return "choices" not in body and any(key in body for key in _ERROR_KEYS)


def validate_natively(body: JsonObject, native: Validator, ctx: Context) -> None:
    """Count violations of the provider's own schema in the receipt.

    Raises Fault for the first violation under the policy `strict`.
    """
    for violation in () if native.accepts(body) else native.violations(body):
        if ctx.target.policy.replies == "strict":
            raise invalid_reply(violation.message)
        ctx.receipt.violations += 1


def invalid_reply(message: str) -> Fault:
    """Make the fault of a reply that cannot be brought into hub form."""
    text = f"the provider sent an invalid reply: {message}"
    return Fault("upstream_invalid_response", text, code="upstream_invalid_response")
