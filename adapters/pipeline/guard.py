"""Unexpected exceptions while an upstream's bytes are processed.

Such an exception is a defect of dragoman and is reported as one. But this reply caused it, and another target's reply
may not: so the attempt fails with a fault of the upstream, after which the caller can ask the next target.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.adapters.faults import Fault

__all__ = ["DefectReporter", "UnexpectedErrorGuard", "ignore_defect"]

DefectReporter = Callable[[str, Exception], None]
"""Called with the provider's name and the exception. Do not log the exception's text: it may quote the reply."""


def ignore_defect(provider: str, error: Exception) -> None:
    """Report nothing."""


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
