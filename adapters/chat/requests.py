"""Validates a client's chat request by its own dialect."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.steering_keys import refuse_steering
from dragoman.adapters.user_schemas import check_user_schemas
from dragoman.adapters.validation import Validator

from .coherence import check_coherence

__all__ = ["check_request"]


def check_request(body: JsonObject, validator: Validator) -> None:
    """Check the limits for hostile input, then the dialect's schema, then rules that no schema can express.

    Raises Fault, with the path as the client wrote it.
    """
    refuse_steering(body)
    check_user_schemas(body)
    validator.check(body)
    check_coherence(body)
