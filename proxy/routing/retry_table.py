"""What happens after a fault of an upstream: one table for retries, fallbacks and the health of targets.

The table applies before the response to the client has begun; after that only its last column does. A provider that
broke the connection is tried again at once, because a pooled one may have been closed for its age; one that failed
otherwise after every other target.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from dragoman.adapters.error_meanings import UNSERVED
from dragoman.adapters.faults import Fault, Kind
from dragoman.proxy.upstreams.call_slots import BUSY

from .health import Verdict
from .rate_limits import LIMITED_HERE

__all__ = ["LONGEST_WAIT", "RetryRule", "find_rule"]

LONGEST_WAIT = 10.0
"""The longest time in seconds that an exchange waits because a provider asks for it."""


class RetryRule(NamedTuple):
    """`again`: whether the same target is tried once more, `at_once` or `last`, after the other targets.
    `next_target`: whether the next one is tried. `verdict`: what the fault says of the target."""

    again: Literal["at_once", "last"] | None
    next_target: bool
    verdict: Verdict


_STOP = RetryRule(None, next_target=False, verdict="unknown")
_NEXT = RetryRule(None, next_target=True, verdict="unknown")
_FAILED = RetryRule(None, next_target=True, verdict="failed")
_FAILED_ONCE = RetryRule("last", next_target=True, verdict="failed")
_BROKEN = RetryRule("at_once", next_target=True, verdict="failed")
_LIMITED = RetryRule("last", next_target=True, verdict="limited")
_LOCKED_OUT = RetryRule(None, next_target=True, verdict="locked_out")

# By kind and code; None covers every code without a row of its own.
_TABLE: dict[tuple[Kind, str | None], RetryRule] = {
    ("upstream_unreachable", "upstream_unreachable"): _FAILED_ONCE,  # refused, or no such host
    ("upstream_unreachable", "upstream_disconnected"): _BROKEN,  # a pooled connection that was closed looks like this
    ("upstream_unreachable", None): _FAILED,
    ("upstream_timeout", None): _FAILED,
    ("upstream_unavailable", BUSY): _NEXT,
    ("upstream_unavailable", "upstream_auth_unavailable"): _FAILED,
    ("upstream_unavailable", "engine_down"): _FAILED,
    ("upstream_unavailable", None): _FAILED_ONCE,
    ("upstream_error", None): _FAILED_ONCE,
    ("upstream_invalid_response", "upstream_mismatch"): _NEXT,  # the model's mistake, not the provider's
    ("upstream_invalid_response", "upstream_redirect"): _FAILED,
    ("upstream_invalid_response", "upstream_response_too_large"): _FAILED,
    ("upstream_invalid_response", None): _FAILED_ONCE,
    ("upstream_auth_failed", None): _LOCKED_OUT,
    ("rate_limit", "insufficient_quota"): _LOCKED_OUT,
    ("rate_limit", LIMITED_HERE): _NEXT,
    ("rate_limit", None): _LIMITED,
    ("request_timeout", None): _FAILED_ONCE,
    ("permission", None): _NEXT,
    ("content_filter", None): _NEXT,
    ("unsupported_parameter", UNSERVED): _NEXT,
}


def find_rule(fault: Fault) -> RetryRule:
    """The row for a fault. One that is the client's stops everything, and says nothing of the target. A target that
    asks for a long time, or after 429 for none, is not tried again."""
    rule = _TABLE.get((fault.kind, fault.code)) or _TABLE.get((fault.kind, None), _STOP)
    wait = fault.retry_after if rule is not _LIMITED or fault.retry_after is not None else LONGEST_WAIT + 1
    return rule if wait is None or wait <= LONGEST_WAIT else rule._replace(again=None)
