"""The header `extra-parameters`: what a client wants done with keys that the API does not define."""

from __future__ import annotations

from typing import Literal, TypeAlias

from .call import Headers
from .faults import Fault

__all__ = ["EXTRA_PARAMETERS", "ExtraParameters", "read_extra_parameters"]

EXTRA_PARAMETERS = "extra-parameters"

ExtraParameters: TypeAlias = Literal["error", "drop", "pass-through"]

_WORDS: dict[str, ExtraParameters] = {
    "error": "error",
    "drop": "drop",
    "ignore": "drop",
    "pass-through": "pass-through",
    "allow": "pass-through",
}


def read_extra_parameters(headers: Headers) -> ExtraParameters | None:
    """Return the client's choice, None without the header.

    `ignore`, the reference's word, means `drop`; the older `allow` means `pass-through`. Raises Fault `invalid_request`
    for another word.
    """
    given = headers.get(EXTRA_PARAMETERS)
    if given is None:
        return None
    word = _WORDS.get(given.strip().lower())
    if word is None:
        text = (
            f"Unexpected EXTRA_PARAMETERS option {given[:40]}, expected options are ['error', 'drop', 'pass-through']"
        )
        raise Fault("invalid_request", text, (EXTRA_PARAMETERS,), given, code="invalid_value")
    return word
