"""What an attempt gives its caller: bytes for the client, further work, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from dragoman.adapters.call import Call
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.responses.stored import StoredResponse

__all__ = ["COMPLETE", "NOTHING", "OPEN", "Outcome", "Output", "PlannedCall"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far an attempt is. `fault` is set exactly when `state` is "failed"."""

    state: Literal["open", "complete", "failed"]
    fault: Fault | None = None


OPEN = Outcome("open")
COMPLETE = Outcome("complete")


class PlannedCall(NamedTuple):
    """A call for the caller to make. `number` names it in every later method; `stream` says that the provider is asked
    for server-sent events; `receipt` has the changes on the way to this call."""

    number: int
    call: Call
    stream: bool
    receipt: Receipt


class Output(NamedTuple):
    """What one step of an attempt asks its caller to do, in this order.

    `record`: save it, then call `confirm_save` or `reject_save`; the record of a failed answer needs neither.
    `data`: send these bytes to the client. `calls`: make these calls. `more`: call `resume` for the same call; there is
    more to decompress, and other work may run in between.
    """

    data: bytes = b""
    record: StoredResponse | None = None
    calls: tuple[PlannedCall, ...] = ()
    more: bool = False


NOTHING = Output()
