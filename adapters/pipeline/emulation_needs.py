"""Which emulations a request needs toward a target: none, until the target refuses a field that has one."""

from __future__ import annotations

from dataclasses import replace

from dragoman.adapters.call import Context, JsonObject, Target
from dragoman.adapters.emulation.calls import EmulatedCalls
from dragoman.adapters.emulation.interface import Emulation
from dragoman.adapters.emulation.registry import EMULATIONS, find_obstacle
from dragoman.adapters.faults import Fault

from .plan import TargetPlan

__all__ = ["EmulationNeeds", "split_request"]


class EmulationNeeds:
    """The needs of one request. `target` is the plan of the target, which no longer emulates what turned out to be
    impossible."""

    def __init__(self, target: TargetPlan, request: JsonObject) -> None:
        """`request` is the client's, in canonical form."""
        self.target = target
        self._request = request
        self._fields: set[str] = set()

    def take(self, fault: Fault) -> bool:
        """Whether the field that a fault refuses is emulated from now on. True too if it cannot be emulated, but the
        policies may drop or clamp it instead of refusing it."""
        target, field = self.target.target, str(fault.place[0]) if fault.place else ""
        if field not in target.emulates or field in self._fields:
            return False
        obstacle = find_obstacle(field, self._request, exactly=target.policy.unsupported == "refuse-exactly")
        if obstacle is None:
            self._fields.add(field)
            return True
        fault.message += f"; {obstacle}" if obstacle else ""
        self.target = self.target.with_target(replace(target, emulates=target.emulates - {field}))
        return target.policy.unsupported == "drop" or target.policy.out_of_range != "error"

    def list_emulations(self) -> list[Emulation]:
        """The emulations in the order in which they split the request."""
        return [emulation for field, emulation in EMULATIONS.items() if field in self._fields]


def split_request(
    ctx: Context, needs: EmulationNeeds | None, batching: Emulation | None, canonical: Target
) -> tuple[list[Context], EmulatedCalls | None]:
    """The contexts of the calls to make for a request, and what joins their replies; None if nothing has to.

    `canonical` is the target with replies in canonical form, which joining needs. Raises Fault.
    """
    emulations = [] if needs is None else needs.list_emulations()
    emulated = EmulatedCalls(ctx, emulations if batching is None else [*emulations, batching])
    if emulated.is_empty:
        return [ctx], None
    return [part._replace(target=canonical) for part in emulated.parts], emulated
