"""What chat and completions requests have in common: the hub's parameters as the engine takes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator

from .requests import Sampling

__all__ = ["STREAMING", "check", "check_best_of", "max_tokens", "sampling", "stops", "wants_usage"]

STREAMING = frozenset({"stream", "stream_options"})
SAMPLED = frozenset(
    [
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "logit_bias",
        "seed",
    ]
)
ENDS = frozenset(
    ["n", "best_of", "stop", "stop_token_ids", "ignore_eos", "skip_special_tokens", "include_stop_str_in_output"]
)
HONOURED = STREAMING | SAMPLED | ENDS | {"model", "logprobs", "max_tokens"}
HIGHEST_BIAS = 100.0


def check(request: JsonObject, name: str, honoured: Collection[str]) -> None:
    """Validator a request by a hub schema, and refuse what it asks for and the engine does not do. Raises Fault."""
    found = load_validator(name)
    found.check(request)
    for key, value in request.items():
        rule = found.schema["properties"].get(key)
        if key in HONOURED or key in honoured or value is None:
            continue
        if rule is None:
            raise Fault("extra_parameter", f"{key} is not known", (key,), value, code="unknown_parameter")
        if value not in rule.get("x-neutral", ()) and not _advisory(rule.get("x-advisory"), value):
            raise Fault("unsupported_parameter", f"{key} is not served by the local engine", (key,), value)


def _advisory(mark: Any, value: Any) -> bool:
    return value in mark if isinstance(mark, list) else bool(mark)


def sampling(request: JsonObject, logprobs: int | None) -> Sampling:
    given = {key: request[key] for key in SAMPLED if request.get(key) is not None and key != "logit_bias"}
    given["top_k"] = max(0, given.get("top_k", 0))
    return Sampling(**given, logit_bias=_bias(request.get("logit_bias") or {}), logprobs=logprobs)


def _bias(given: Mapping[str, Any]) -> dict[int, float]:
    found = {}
    for key, value in given.items():
        if not key.isascii() or not key.isdigit():
            raise Fault("invalid_request", f"{key!r} is no token id", ("logit_bias", key), value)
        if not -HIGHEST_BIAS <= value <= HIGHEST_BIAS:
            raise Fault("invalid_request", f"a bias is -100 to 100, not {value}", ("logit_bias", key), value)
        found[int(key)] = float(value)
    return found


def stops(request: JsonObject) -> tuple[str, ...]:
    given = request.get("stop") or []
    return (given,) if isinstance(given, str) else tuple(given)


def max_tokens(request: JsonObject, *keys: str) -> tuple[int | None, str]:
    """The first of these limits that is set, and its key."""
    return next(((request[key], key) for key in keys if request.get(key) is not None), (None, keys[0]))


def wants_usage(request: JsonObject) -> bool:
    """Streams carry usage where they are asked to; other replies always do."""
    options = request.get("stream_options") or {}
    return not request.get("stream") or bool(options.get("include_usage"))


def check_best_of(request: JsonObject) -> None:
    best, count = request.get("best_of"), request.get("n") or 1
    if best not in (None, count, 0 if count == 1 else count):
        message = f"best_of is served where it equals n, which is {count}"
        raise Fault("unsupported_parameter", message, ("best_of",), best)
