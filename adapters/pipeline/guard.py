"""Unexpected exceptions while an upstream's bytes are processed.

Such an exception is a defect of dragoman and is reported as one. But this reply caused it, and another target's reply
may not: so the attempt fails with a fault of the upstream, after which the caller can ask the next target.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.translate.bridge_interface import Bridge
from dragoman.adapters.validation import load_validator

__all__ = [
    "DefectReporter",
    "UnexpectedErrorGuard",
    "explain_error",
    "explain_reply_error",
    "ignore_defect",
    "translate_request",
]

DefectReporter = Callable[[str, Exception], None]
"""Called with the provider's name and the exception. Do not log the exception's text: it may quote the reply."""


def ignore_defect(provider: str, error: Exception) -> None:
    """Report nothing."""


def explain_error(error: Exception, schema: str, body: JsonObject) -> Exception:
    """Return the Fault for an error that a body caused which is not in hub form: its first violation of the hub's
    schema, with its path. Any other error is returned as it is.

    Bridges and writers require hub form, which some dialects' requests, and replies under `off` and `report`, need not
    have.
    """
    violation = None if isinstance(error, Fault) else load_validator(schema).first_violation(body)
    return error if violation is None else violation.to_fault()


def translate_request(bridge: Bridge, protocol: str, ctx: Context) -> Context:
    """The context with its request translated. `protocol` is the client's. Raises Fault, or the Exception of a
    defect."""
    try:
        return bridge.request(ctx)
    except Exception as error:
        raise explain_error(error, f"hub/{protocol}.request", ctx.request) from error


def explain_reply_error(error: Exception, ctx: Context, schema: str, body: JsonObject) -> Exception:
    """As `explain_error`, for a provider's reply or event. Under policies that ensure hub form, the error is returned
    as it is."""
    if ctx.target.policy.replies in ("repair", "strict"):
        return error
    found = explain_error(error, schema, body)
    if found is error or not isinstance(found, Fault):
        return error
    text = f"the provider's reply cannot be written in the client's dialect: {found.message}"
    return Fault("upstream_invalid_response", text, code="upstream_invalid_response")


class UnexpectedErrorGuard:
    """Turns any exception into the fault of one upstream."""

    __slots__ = ("_provider", "_report")

    def __init__(self, provider: str, report: DefectReporter) -> None:
        self._provider = provider
        self._report = report

    def as_upstream_fault(self, error: Exception) -> Fault:
        """A fault as it is; any other exception as `upstream_invalid_response`, once it is reported."""
        if isinstance(error, Fault):
            return error
        self._report(self._provider, error)
        text = f"{self._provider}: its reply cannot be read"
        return Fault("upstream_invalid_response", text, code="upstream_invalid_response")
