"""Who may ask, and for which models."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Key
from dragoman.proxy.config.names import matches

__all__ = ["ANYONE", "CREDENTIALS", "Caller", "Keys"]

CREDENTIALS = frozenset({"authorization", "api-key", "x-api-key", "proxy-authorization", "cookie"})
"""Headers of a client that go no further than this module."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a key: its name in the log, and the patterns of the models that it may see."""

    name: str | None
    models: tuple[str, ...] = ("*",)

    def sees(self, model: str) -> bool:
        return "*" in self.models or any(matches(pattern, model) for pattern in self.models)


ANYONE = Caller(None)


class Keys:
    """The configured keys. Without any, everyone may ask for everything."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._known = [(_digest(key.key.get_secret_value()), Caller(key.name, tuple(key.models))) for key in keys]

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """The caller with these credentials. Raises Fault; its text never holds a key."""
        if not self._known:
            return ANYONE
        given = _given(headers)
        if not given:
            raise _refused("no API key was given: send it as `Authorization: Bearer KEY` or in the header api-key")
        if len(given) > 1:
            raise _refused("the headers hold different API keys")
        digest = _digest(given.pop())
        found: Caller | None = None
        for known, caller in self._known:  # all of them, so that time tells nothing
            if hmac.compare_digest(known, digest):
                found = caller
        if found is None:
            raise _refused("the API key is not known here")
        return found


def _given(headers: Mapping[str, str]) -> set[str]:
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    found = {headers.get("api-key", "").strip(), headers.get("x-api-key", "").strip()}
    if scheme.lower() == "bearer":
        found.add(token.strip())
    return found - {""}


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def _refused(text: str) -> Fault:
    return Fault("auth", text, code="invalid_api_key")
