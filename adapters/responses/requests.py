"""Validates a client's Responses request by its own dialect."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.steering_keys import refuse_steering
from dragoman.adapters.user_schemas import check_responses_schemas
from dragoman.adapters.validation import Validator

__all__ = ["check_request"]


def check_request(body: JsonObject, validator: Validator) -> bool:
    """Check the limits for hostile input, then the dialect's schema. Raises Fault; its path is the client's.

    Returns whether items or other values have keys that the dialect does not define: they are extra parameters.
    """
    refuse_steering(body)
    check_responses_schemas(body)
    return validator.check_with_extras(body)
