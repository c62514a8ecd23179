"""Every reason why a target cannot serve a request.

A writer raises the first reason. So the refused value is removed from the canonical request, and the rest is written
again, until it can be written. A value that the protocol requires is removed with what contains it; if that is required
too, no further reason can be found. The work is bounded: a large request is written fewer times.

A value that can be emulated is no reason: it stays in the request, and whoever writes it emulates it from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.edits import remove
from dragoman.adapters.faults import MOST_REASONS, Fault, Kind
from dragoman.adapters.paths import Path, lookup, trim_path
from dragoman.adapters.validation import Validator, count_values, load_validator

__all__ = ["find_refusals"]

Write: TypeAlias = Callable[[Context], None]
"""Writes the request of a client's context for the target. Raises Fault."""

_REFUSALS: frozenset[Kind] = frozenset({"unsupported_parameter", "extra_parameter"})
_MOST_WORK = 32_000
"""The most values that are written for further reasons."""


def find_refusals(
    first: Fault, client: Context, protocol: str, write: Write, emulate: Callable[[Fault], bool]
) -> list[Fault]:
    """List the reasons why the target refuses a request; writing it raised `first`.

    `client` is the context of the client's side. `emulate` returns whether the parameter of a reason is emulated from
    now on; `place` is its path in the canonical request. A fault that is no refusal is returned as the only reason. If
    the list is empty, the last `write` has written the whole request.
    """
    validator = load_validator(f"hub/{protocol}.request")
    refused: list[Fault] = []
    known: set[Path] = set()
    fault, work = first, _MOST_WORK
    while True:
        is_refusal = fault.kind in _REFUSALS
        is_new = is_refusal and fault.path not in known
        known.add(fault.path)
        reduced: Context | None = client
        if not is_refusal or not emulate(fault):
            if is_new or not refused:
                refused.append(fault)
                work -= count_values(client.request, work)
            reduced = _remove_refused(client, fault.place, validator) if is_new and work > 0 else None
        if reduced is None or len(known) == MOST_REASONS:
            return refused
        client = reduced
        try:
            write(client)
        except Fault as further:
            fault = further
        else:
            return refused


def _remove_refused(client: Context, place: Path, validator: Validator) -> Context | None:
    """The context with a request without what is at a place; None if the request cannot do without it."""
    if trim_path(client.request, place) != place:
        return None
    for length in range(len(place), 0, -1):
        request, removed = dict(client.request), place[:length]
        remove(request, removed)
        if validator.accepts(request) or not _is_required(removed, request, validator):
            return _replace_request(client, request, removed)
    return None


def _is_required(removed: Path, request: JsonObject, validator: Validator) -> bool:
    """Whether the request breaks a rule about what was removed or what contained it. Rules about parameters that need
    the removed one are left to the target. Not all rules are looked for in a large request: then it is written without
    what it cannot do without, which gives no further reason either."""
    return any(violation.path == removed[: len(violation.path)] for violation in validator.find_violations(request))


def _replace_request(client: Context, request: JsonObject, removed: Path) -> Context:
    """The context with the request; its receipt knows where the items after a removed one were."""
    receipt = client.receipt.fork()
    *above, position = removed
    if isinstance(position, int):
        count = len(lookup(client.request, (*above,)))
        receipt.map_paths([((*above, i), (*above, i - 1)) for i in range(position + 1, count)])
    receipt.mark_canonical()
    return client._replace(request=request, receipt=receipt)
