"""Judging a client's Responses request by its own dialect: the rules that hold whatever the dialect."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.refused import refuse_steering
from dragoman.adapters.user_schemas import check_responses_schemas
from dragoman.adapters.validation import Judge

__all__ = ["check_request"]


def check_request(body: JsonObject, judge: Judge, receipt: Receipt | None = None) -> None:
    """The bounds of hostile input, then the dialect's schema. Raises Fault, its path as the client wrote it.
    The receipt remembers whose schema it was: `body` is then the call's own."""
    refuse_steering(body)
    check_responses_schemas(body)
    judge.check(body)
    if receipt is not None:
        receipt.accepted_by = judge
