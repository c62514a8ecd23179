"""What the readers of all protocols' whole replies share: errors that come as replies, and the provider's schema."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import Validator

__all__ = ["invalid_reply", "reports_error", "validate_natively"]

_ERROR_KEYS = ("error_code", "error_type", "detail", "err_msg", "external_model_message")


def reports_error(body: JsonObject) -> bool:
    """True if the body reports an error, whatever its status said."""
    if body.get("error"):
        return True
    return "choices" not in body and any(key in body for key in _ERROR_KEYS)


def validate_natively(body: JsonObject, native: Validator, ctx: Context) -> None:
    """Count violations of the provider's own schema, or, under the policy `strict`, raise the first as a Fault."""
    for violation in () if native.accepts(body) else native.violations(body):
        if ctx.target.policy.replies == "strict":
            raise invalid_reply(violation.message)
        ctx.receipt.violations += 1


def invalid_reply(message: str) -> Fault:
    """The fault of a reply that cannot be brought into hub form."""
    text = f"the provider sent a reply that is not valid: {message}"
    return Fault("upstream_invalid_response", text, code="upstream_invalid_response")
