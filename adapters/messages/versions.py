"""The versions of the Messages API, which a client names in the header `anthropic-version`.

A property of the request schema belongs to all versions unless its `x-versions` lists them.
"""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault, join_faults
from dragoman.adapters.validation import Validator

__all__ = ["VERSIONS", "check_version", "list_foreign"]

VERSIONS = ("2023-06-01", "2026-10-21")
"""The versions that clients may ask for, the oldest first."""


def list_foreign(body: JsonObject, version: str, validator: Validator) -> list[str]:
    """Return the parameters of a request that the version does not have, although another one does.

    A parameter that is null counts as absent. `validator` is that of the dialect's requests.
    """
    properties = validator.schema["properties"]
    return [
        name
        for name, value in body.items()
        if value is not None and version not in properties.get(name, {}).get("x-versions", (version,))
    ]


def check_version(body: JsonObject, version: str, validator: Validator) -> None:
    """Check that the version has every parameter of the request. Raises Fault `extra_parameter` with all others."""
    foreign = list_foreign(body, version, validator)
    if foreign:
        raise join_faults(_refuse(name, body, version) for name in foreign)


def _refuse(name: str, body: JsonObject, version: str) -> Fault:
    text = f"{name} is not a parameter of the API version {version}"
    return Fault("extra_parameter", text, (name,), body[name], code="unknown_parameter")
