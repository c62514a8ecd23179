"""Validates a client's Responses request by its own dialect."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.steering_keys import refuse_steering
from dragoman.adapters.user_schemas import check_responses_schemas
from dragoman.adapters.validation import Validator

__all__ = ["check_request"]


def check_request(body: JsonObject, validator: Validator) -> None:
    """Check the limits for hostile input, then the dialect's schema. Raises Fault; its path is the client's."""
    refuse_steering(body)
    check_responses_schemas(body)
    validator.check(body)
