"""How the targets of a model are put in order for one request.

    weighted     drawn by weight (the default)
    least-busy   the fewest running requests for its weight come first
    fastest      of two that are drawn by weight, the one with the shorter wait comes first: its usual time to the first
                 byte, times the requests that it has and this one
    sticky       the same session has the same order, as long as the targets are the same: rendezvous hashing by weight

Two choices by latency spread the load almost as well as a look at all targets, and do not send every request to the one
that was fastest a moment ago. Targets with the weight 0 come after all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from random import Random
from typing import TypeAlias

from .targets import Candidate

__all__ = ["BALANCES", "Order"]

Order: TypeAlias = Callable[[Sequence[Candidate], Random, str | None], Iterator[Candidate]]
"""Orders targets whose weight is not 0. The text names the client's session, None if it is not known."""


def draw_by_weight(targets: Sequence[Candidate], random: Random, _session: str | None = None) -> Iterator[Candidate]:
    """Draw without replacement."""
    left = list(targets)
    while len(left) > 1:
        yield left.pop(_draw(left, random))
    yield from left


def sort_by_load(targets: Sequence[Candidate], random: Random, _session: str | None) -> Iterator[Candidate]:
    """Sort by running requests for the weight; equal ones are drawn."""
    drawn = list(draw_by_weight(targets, random))
    return iter(sorted(drawn, key=lambda one: one.health.in_flight / one.choice.weight))


def choose_faster(targets: Sequence[Candidate], random: Random, _session: str | None) -> Iterator[Candidate]:
    """Draw two, take the one with the shorter wait, and so on. A target that was not measured yet comes first."""
    left = list(targets)
    while len(left) > 1:
        first = _draw(left, random)
        others = [position for position in range(len(left)) if position != first]
        second = others[_draw([left[position] for position in others], random)]
        yield left.pop(min(first, second, key=lambda position: _estimate_wait(left[position])))
    yield from left


def sort_by_session(targets: Sequence[Candidate], random: Random, session: str | None) -> Iterator[Candidate]:
    """Sort by a hash of session and target; without a session, draw."""
    if session is None:
        return draw_by_weight(targets, random)
    return iter(sorted(targets, key=lambda one: _score(session, one)))


BALANCES: Mapping[str, Order] = {
    "weighted": draw_by_weight,
    "least-busy": sort_by_load,
    "fastest": choose_faster,
    "sticky": sort_by_session,
}
"""The orders by the names in the configuration."""


def _draw(targets: Sequence[Candidate], random: Random) -> int:
    return random.choices(range(len(targets)), [one.choice.weight for one in targets])[0]


def _estimate_wait(target: Candidate) -> float:
    return (target.health.latency or 0.0) * (target.health.in_flight + 1)


def _score(session: str, target: Candidate) -> float:
    """The lowest one wins: an exponentially distributed number with the weight as its rate."""
    digest = blake2b(f"{session}\0{target.label}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    share = (int.from_bytes(digest, "big") + 1) / (2**64 + 1)
    return -math.log(share) / target.choice.weight
