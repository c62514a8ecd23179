"""The interface of emulations: a request that a provider cannot serve becomes requests that it can.

    the request    one becomes one or several    `split`
    the replies    several become one            `join`
    the streams    several become one            `merge`

Those of `registry.EMULATIONS` see hub form in the client's protocol: before the bridge for requests, after it for
replies and streams. Those of `registry.OPT_INS` rewrite a single call, and see hub form in the provider's protocol.
They may ask the provider again after a reply (`follow_up`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.streams import Output

__all__ = ["Emulation", "StreamMerger"]


class StreamMerger(Protocol):
    """Merges the streams of the parts of one request into one stream. It never raises.

    The first terminal that it returns ends the merged stream; nothing follows it.
    """

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return the outputs of the merged stream for these outputs of one part, in their order."""


def _find_no_obstacle(request: JsonObject) -> str | None:
    return None


def _is_always_exact(request: JsonObject) -> bool:
    return True


def _is_final(replies: list[JsonObject], ctx: Context) -> JsonObject | None:
    return None


@dataclass(frozen=True, slots=True)
class Emulation:
    """How to serve a request that the provider cannot serve as it is.

    `split` returns a context for each call: its request in hub form, and a receipt, which is one of its own if there
    are several calls. If nothing has to be done it returns only the context that it got. `join` merges the replies, in
    the order of the calls, and may alter them. Both raise Fault. `merge` gets the whole request's context and the
    number of calls; None means that these calls are not streamed. `find_obstacle` says why a request cannot be
    emulated: an empty text if there is nothing to emulate in it, None if it can be. `is_exact` says whether the answer
    is what a provider with the capability would give.

    `follow_up` returns the request of a further call after these replies to one call, in their order; None if there is
    none. Then `join` gets all of them, and the last one is the answer. A stream is never followed up.
    """

    split: Callable[[Context], list[Context]]
    join: Callable[[list[JsonObject], Context], JsonObject]
    merge: Callable[[Context, int], StreamMerger] | None = None
    find_obstacle: Callable[[JsonObject], str | None] = _find_no_obstacle
    is_exact: Callable[[JsonObject], bool] = _is_always_exact
    follow_up: Callable[[list[JsonObject], Context], JsonObject | None] = _is_final
