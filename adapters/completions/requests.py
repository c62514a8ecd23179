"""Validates a client's completions request by its own dialect, and counts its prompts and choices."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.steering_keys import refuse_steering
from dragoman.adapters.validation import Validator

__all__ = ["check_request", "count_choices", "count_prompts", "drop_idle_best_of"]


def check_request(body: JsonObject, validator: Validator) -> None:
    """Check the dialect's schema, then rules that no schema can express.

    Raises Fault, with the path as the client wrote it.
    """
    refuse_steering(body)
    validator.check(body)
    _check_best_of(body)


def count_prompts(request: JsonObject) -> int:
    """The number of prompts of a request. A list of tokens is one prompt, and so is a missing prompt."""
    prompt = request.get("prompt")
    if not isinstance(prompt, list) or not prompt or isinstance(prompt[0], int):
        return 1
    return len(prompt)


def count_choices(request: JsonObject) -> int:
    """The number of choices that a request asks for, per prompt."""
    return request.get("n") or 1


def drop_idle_best_of(body: JsonObject, ctx: Context) -> None:
    """Drop `best_of` if it equals `n` and so has no effect. Alters the writer's own copy of the body."""
    if body.get("best_of") == count_choices(body):
        del body["best_of"]
        ctx.receipt.record_drop(("best_of",), "best_of equals n, so it has no effect", "form")


def _check_best_of(body: JsonObject) -> None:
    best_of, choices = body.get("best_of"), count_choices(body)
    if not isinstance(best_of, int) or best_of <= 1 == choices:
        return
    if best_of < choices:
        text = f"best_of must be at least n, which is {choices}"
    elif body.get("stream") and best_of > choices:
        text = "a stream cannot wait for the best of several candidates: with stream, best_of is at most n"
    else:
        return
    raise Fault("invalid_request", text, ("best_of",), best_of, code="invalid_value")
