"""Parameters that chat and completions requests share: checked, and converted for the engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator
from dragoman.local_engine.generation import SamplingParams
from dragoman.local_engine.model_folder.sampling_defaults import SAMPLING_DEFAULTS

__all__ = [
    "check_best_of",
    "check_request",
    "fill_in_defaults",
    "read_max_tokens",
    "read_sampling",
    "read_stop_sequences",
    "wants_usage",
]

STREAM_FIELDS = frozenset({"stream", "stream_options"})
SAMPLING_FIELDS = frozenset({*SAMPLING_DEFAULTS, "logit_bias", "seed"})
OUTPUT_FIELDS = frozenset(
    ["n", "best_of", "stop", "stop_token_ids", "ignore_eos", "skip_special_tokens", "include_stop_str_in_output"]
)
SHARED_FIELDS = STREAM_FIELDS | SAMPLING_FIELDS | OUTPUT_FIELDS | {"model", "logprobs", "max_tokens"}
MAX_BIAS = 100.0


def fill_in_defaults(request: JsonObject, defaults: Mapping[str, Any]) -> JsonObject:
    """Return the request with the model's value of each sampling parameter that it leaves open."""
    missing = {key: value for key, value in defaults.items() if request.get(key) is None}
    return request | missing if missing else request


def check_request(request: JsonObject, schema: str, supported: Collection[str]) -> None:
    """Validate a request with a hub schema, and reject fields that are not supported here. Raises Fault."""
    validator = load_validator(schema)
    validator.check(request)
    for key, value in request.items():
        rule = validator.schema["properties"].get(key)
        if key in SHARED_FIELDS or key in supported or value is None:
            continue
        if rule is None:
            raise Fault("extra_parameter", f"unknown parameter {key}", (key,), value, code="unknown_parameter")
        if value not in rule.get("x-neutral", ()) and not _is_advisory(rule.get("x-advisory"), value):
            raise Fault("unsupported_parameter", f"{key} is not supported by the local engine", (key,), value)


def _is_advisory(mark: Any, value: Any) -> bool:
    return value in mark if isinstance(mark, list) else bool(mark)


def read_sampling(request: JsonObject, logprobs: int | None) -> SamplingParams:
    given = {key: request[key] for key in SAMPLING_FIELDS if request.get(key) is not None and key != "logit_bias"}
    given["top_k"] = max(0, given.get("top_k", 0))
    return SamplingParams(**given, logit_bias=_read_bias(request.get("logit_bias") or {}), logprobs=logprobs)


def _read_bias(given: Mapping[str, Any]) -> dict[int, float]:
    found = {}
    for key, value in given.items():
        if not key.isascii() or not key.isdigit():
            raise Fault("invalid_request", f"{key!r} is not a token id", ("logit_bias", key), value)
        if not -MAX_BIAS <= value <= MAX_BIAS:
            raise Fault("invalid_request", f"a bias must be from -100 to 100, not {value}", ("logit_bias", key), value)
        found[int(key)] = float(value)
    return found


def read_stop_sequences(request: JsonObject) -> tuple[str, ...]:
    given = request.get("stop") or []
    return (given,) if isinstance(given, str) else tuple(given)


def read_max_tokens(request: JsonObject, *keys: str) -> int | None:
    """Read the first of these fields that is set."""
    return next((request[key] for key in keys if request.get(key) is not None), None)


def wants_usage(request: JsonObject) -> bool:
    """Whether the reply contains usage: a stream only if requested, any other reply always."""
    options = request.get("stream_options") or {}
    return not request.get("stream") or bool(options.get("include_usage"))


def check_best_of(request: JsonObject) -> None:
    """Raises Fault unless `best_of` equals `n`."""
    best, count = request.get("best_of"), request.get("n") or 1
    if best not in (None, count, 0 if count == 1 else count):
        message = f"best_of must equal n, which is {count}"
        raise Fault("unsupported_parameter", message, ("best_of",), best)
