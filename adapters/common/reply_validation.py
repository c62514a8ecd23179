"""Checks of whole replies that all protocols share: errors sent as replies, and the provider's own schema."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import Validator

__all__ = ["find_error", "invalid_reply", "validate_natively"]

_ANSWERS = ("output", "data", "response")
_ERROR_KEYS = (
    "error_code", "error_type", "error_message", "error_msg", "err_msg", "errorMessage", "errors", "fault", "detail",
    "message", "Message", "msg", "title", "external_model_message", "ResponseMetadata", "Response",
)  # fmt: skip


def find_error(body: Any) -> JsonObject | None:
    """The error object that a parsed body or event is, whatever the HTTP status was; None if it reports no error.

    It decides for whole replies and for streams. Shapes: an `error` next to anything; without an answer, a message or a
    code of an error, or a label that says `error`; a list that holds such an object, as Gemini sends it; MiniMax's
    `base_resp` with a status that is not 0.
    """
    if not isinstance(body, dict):
        return next(filter(None, map(find_error, body)), None) if isinstance(body, list) else None
    if body.get("error") or "error" in (body.get("object"), body.get("type")) or _has_failed_status(body):
        return body
    if body.get("choices") is not None or any(body.get(key) is not None for key in _ANSWERS):
        return None
    return body if body.get("status") == "error" or any(_is_said(body.get(key)) for key in _ERROR_KEYS) else None


def _has_failed_status(body: JsonObject) -> bool:
    status = body.get("base_resp")
    return isinstance(status, dict) and bool(status.get("status_code"))


def _is_said(value: Any) -> bool:
    """Whether a key of an error says something. A number is no message, and Ollama's `message` is no error."""
    if isinstance(value, dict):
        return "role" not in value and bool(value)
    return bool(value) and isinstance(value, str | list)


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
