"""Validates a client's chat request by its own dialect."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.steering_keys import refuse_steering
from dragoman.adapters.user_schemas import check_user_schemas
from dragoman.adapters.validation import Validator

from .coherence import check_coherence
from .messages import is_silent

__all__ = ["check_request"]


def check_request(body: JsonObject, validator: Validator) -> bool:
    """Check the limits for hostile input, then the dialect's schema, then rules that no schema can express.

    Returns whether messages or other values have keys that the dialect does not define: they are extra parameters.
    Raises Fault, with the path as the client wrote it.
    """
    refuse_steering(body)
    check_user_schemas(body)
    has_extras = not validator.accepts(body) and validator.check_with_extras(_fill_silent_answers(body))
    check_coherence(body)
    return has_extras


def _fill_silent_answers(body: JsonObject) -> JsonObject:
    """The body with a text in each answer without one: replies may be empty, but some dialects refuse that in requests.

    Returns the same object if there is none.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not any(isinstance(one, dict) and is_silent(one) for one in messages):
        return body
    filled = [{**one, "content": "-"} if isinstance(one, dict) and is_silent(one) else one for one in messages]
    return {**body, "messages": filled}
