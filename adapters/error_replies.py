"""Helpers with which all dialects write faults."""

from __future__ import annotations

import math
import re
from typing import Any

import orjson

from .call import JsonObject, Reply
from .error_meanings import CONTEXT_LENGTH
from .error_texts import truncate
from .faults import Fault

__all__ = [
    "describe",
    "describe_others",
    "describe_with_parameter",
    "format_value",
    "is_showable",
    "keep_if_small",
    "make_reply",
    "name_others",
    "native_details",
]

_SHOWN = 80
_VALUE = 500
_MOST_QUOTED = 4_000  # characters of a value of which the first are quoted
_NAMES = 1000
_SENTENCES = 8192
_GOT = re.compile(r"\bgot ")


def make_reply(status: int, body: JsonObject, fault: Fault, **headers: str) -> Reply:
    """Return the reply with that status and body, and the fault's `retry-after` in seconds.

    `x-should-retry: false` tells OpenAI's clients not to repeat a request that would fail again, or was repeated
    already. Further headers are keyword arguments, with `_` for `-`.
    """
    found = {"content-type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
    if fault.retry_after is not None:
        found["retry-after"] = str(math.ceil(fault.retry_after))
    if fault.is_final or fault.is_exhausted:
        found["x-should-retry"] = "false"
    return Reply(status, body, found)


def describe(fault: Fault) -> str:
    """Return the message, followed by the offending value if that is short, useful and not yet in the message."""
    message = truncate(fault.message) or f"The request failed: {fault.kind}"
    value = format_value(fault.value)
    shows_value = fault.kind == "extra_parameter" or value in message or _GOT.search(message)
    return message if shows_value or not 0 < len(value) <= _SHOWN else f"{message} (got {value})"


def describe_with_parameter(fault: Fault) -> str:
    """Return the message of `describe` with the parameter's name, for dialects that have no field for the name.

    They have none for the code either, so the message ends with the one that agents look for.
    """
    message = describe(fault)
    if fault.param and fault.param not in message:
        message = f"{fault.param}: {message}"
    if fault.code == CONTEXT_LENGTH and CONTEXT_LENGTH not in message:
        message = f"{message} ({CONTEXT_LENGTH})"
    return message


def name_others(fault: Fault) -> str:
    """Return what follows the message if there are further reasons: ` (and 2 more reasons: n, seed)`."""
    return _enumerate_others(fault, truncate(", ".join(one.param or str(one.code) for one in fault.others), _NAMES))


def describe_others(fault: Fault) -> str:
    """Return what follows the message in a dialect that has no place for further reasons: their sentences."""
    return _enumerate_others(fault, truncate("; ".join(map(describe_with_parameter, fault.others)), _SENTENCES))


def _enumerate_others(fault: Fault, listed: str) -> str:
    count = len(fault.others)
    return f" (and {count} more reason{'s' * (count > 1)}: {listed})" if count else ""


def format_value(value: Any) -> str:
    """Return a value as text of at most 500 bytes: a string as it is, None as an empty text, all else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return truncate(value, _VALUE)
    try:
        return truncate(orjson.dumps(value).decode(), _VALUE) if _is_short(value, _MOST_QUOTED) else ""
    except TypeError:
        return ""


def native_details(fault: Fault) -> JsonObject:
    """Return the other facts about a fault: its value, the provider's code and body; large ones are left out."""
    known = {"value": fault.value, "provider_code": fault.provider_code, "native": fault.details}
    return {name: value for name, value in known.items() if value is not None and _is_small(value)}


def keep_if_small(value: Any) -> Any:
    """Return the value if its JSON has at most 2 KiB, else None."""
    return value if _is_small(value) else None


def is_showable(value: Any) -> bool:
    """Whether a reply may show a value, or the beginning of it."""
    return isinstance(value, str) or _is_short(value, _MOST_QUOTED)


def _is_small(value: Any) -> bool:
    most = 4 * _VALUE + 48
    try:
        return _is_short(value, most) and len(orjson.dumps(value)) <= most
    except TypeError:
        return False


def _is_short(value: Any, most: int) -> bool:
    """Whether a JSON value may have at most `most` characters; one that is far longer is not looked at."""
    size, left = 0, [value]
    while left and size <= most:
        one = left.pop()
        size += len(one) if isinstance(one, str | list | dict) else 1
        if isinstance(one, list | dict) and size <= most:
            size += sum(map(len, one)) if isinstance(one, dict) else 0
            left += one.values() if isinstance(one, dict) else one
    return size <= most
