"""What becomes of places where a complete answer is not what was asked for."""

from __future__ import annotations

from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.reply_check import ReplyCheck

__all__ = ["resolve_mismatches"]


def resolve_mismatches(check: ReplyCheck, provider: str, policy: str, receipt: Receipt) -> Fault | None:
    """Record each such place. Under the policy `strict`, return a fault for the first one."""
    for mismatch in check.find_mismatches():
        if policy == "strict":
            text = f"{provider}: the reply is not what was asked for: {mismatch.text}"
            return Fault("upstream_invalid_response", text, code="upstream_mismatch")
        if policy == "report":
            receipt.violations += 1
        else:
            receipt.record_drop(mismatch.path, mismatch.text)
    return None
