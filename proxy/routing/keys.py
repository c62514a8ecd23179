"""Client keys, and the models that each of them may use."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.client_keys import Budget
from dragoman.proxy.config.models import Key
from dragoman.proxy.config.names import matches
from dragoman.proxy.config.traffic import RateLimits
from dragoman.proxy.config.values import parse_expiry
from dragoman.proxy.telemetry.usage_ledger import UsageLedger

from .budgets import BudgetState, KeyBudget, format_time
from .rate_limits import Limiter, LocalCounters, RateCounters

__all__ = ["ANYONE", "CREDENTIALS", "Caller", "Keys"]

CREDENTIALS = frozenset({"authorization", "api-key", "x-api-key", "proxy-authorization", "cookie"})
"""Request headers with a client's credentials. No other module reads them, and they are never forwarded."""

_FORMS = "`Authorization: Bearer KEY` or in the header api-key or x-api-key"


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a key: the key's name in the log, and the patterns of the models that it may use. Its requests are
    refused first if it `can_wait`, and limited by `limiter`, None if they are not. `expires` is in seconds since 1970;
    `metadata` is for the log."""

    name: str | None
    models: tuple[str, ...] = ("*",)
    can_wait: bool = False
    limiter: Limiter | None = None
    expires: float | None = None
    metadata: Mapping[str, str] | None = None
    budget: KeyBudget | None = None

    def can_use(self, model: str) -> bool:
        return "*" in self.models or any(matches(pattern, model) for pattern in self.models)


ANYONE = Caller(None)


class Keys:
    """The configured keys. If there are none, every client may use every model."""

    def __init__(
        self,
        keys: Sequence[Key],
        counters: RateCounters | None = None,
        previous: Keys | None = None,
        ledger: UsageLedger | None = None,
    ) -> None:
        counters, ledger = counters or LocalCounters(), ledger or UsageLedger()
        before = {} if previous is None else previous._limiters
        self._known: dict[bytes, Caller] = {}
        for key in keys:
            self._known[_find_digest(key)] = _create_caller(key, counters, before.get(key.name), ledger)

    def __bool__(self) -> bool:
        return bool(self._known)

    def list_budgets(self) -> Iterator[BudgetState]:
        """Every limit of the budgets of keys, and what is used of it."""
        for caller in self._known.values():
            if caller.budget is not None:
                yield from caller.budget.list_states()

    @property
    def callers(self) -> Collection[Caller]:
        """The owners of the keys."""
        return self._known.values()

    @property
    def _limiters(self) -> dict[str | None, Limiter | None]:
        """The limiters by the names of their keys."""
        return {caller.name: caller.limiter for caller in self._known.values()}

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Find the caller with the key in these headers. Raises Fault, whose text never contains a key.

        Keys are found by their digests: how long that takes tells nothing about a known key, because nobody can choose
        the digest of what he sends.
        """
        if not self._known:
            return ANYONE
        given = [_digest(key) for key in _read_keys(headers)]
        if not given:
            raise _auth_fault(f"no API key was given: send it as {_FORMS}")
        found = [caller for digest in given if (caller := self._known.get(digest)) is not None]
        if not found:
            raise _auth_fault("the proxy does not know this API key: send one of its own, not a provider's")
        if len(found) > 1:
            raise _auth_fault("the headers hold different API keys")
        caller = found[0]
        if caller.expires is not None and time.time() >= caller.expires:
            raise _auth_fault(f"the API key {caller.name} expired on {format_time(caller.expires)}", "api_key_expired")
        return caller


def _create_caller(key: Key, counters: RateCounters, previous: Limiter | None, ledger: UsageLedger) -> Caller:
    is_limited = key.rate != RateLimits()
    limiter = Limiter(f"the key {key.name}", key.rate, counters, previous=previous) if is_limited else None
    expires = None if key.expires is None else parse_expiry(key.expires)
    budget = KeyBudget(key.name, key.budget, ledger) if key.budget != Budget() else None
    return Caller(key.name, tuple(key.models), key.priority == "low", limiter, expires, key.metadata or None, budget)


def _find_digest(key: Key) -> bytes:
    if key.key is not None:
        return _digest(key.key.get_secret_value())
    assert key.key_hash is not None, "the configuration has checked it"
    return bytes.fromhex(key.key_hash.removeprefix("sha256:"))


def _read_keys(headers: Mapping[str, str]) -> set[str]:
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    found = {headers.get("api-key", "").strip(), headers.get("x-api-key", "").strip()}
    if scheme.lower() == "bearer":
        found.add(token.strip())
    return found - {""}


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def _auth_fault(text: str, code: str = "invalid_api_key") -> Fault:
    return Fault("auth", text, code=code)
