"""Which emulations a request needs toward a target: none, until the target refuses a field that has one.

Those that the configuration asks for rewrite single calls (`rewrite_call`). They are chat's, so the provider's protocol
has to be chat.
"""

from __future__ import annotations

from dataclasses import replace

from dragoman.adapters.call import Context, JsonObject, Target
from dragoman.adapters.emulated_fields import name_emulated_field
from dragoman.adapters.emulation.calls import EmulatedCalls
from dragoman.adapters.emulation.interface import Emulation
from dragoman.adapters.emulation.registry import EMULATIONS, OPT_INS, find_obstacle
from dragoman.adapters.emulation.rewritten_call import RewrittenCall
from dragoman.adapters.faults import Fault
from dragoman.adapters.opt_ins import OPT_IN_PLACES

from .plan import ProtocolPlan, TargetPlan

__all__ = ["EmulationNeeds", "rewrite_call", "split_request"]

_REWRITTEN = "chat"
_COUNTED = ("chat", "completions")
_NEEDED = ("response_format", "tools")  # settings that a refusal makes necessary


class EmulationNeeds:
    """The needs of one request. `target` is the plan of the target, which no longer emulates what turned out to be
    impossible."""

    def __init__(self, target: TargetPlan, plan: ProtocolPlan, request: JsonObject) -> None:
        """`request` is the client's, in canonical form, and `plan` how the target serves its protocol."""
        self.target = target
        self._protocol = plan.protocol
        self._request = request
        self._fields: set[str] = set()
        self._settings: set[str] = set()

    def take(self, fault: Fault) -> bool:
        """Whether the field that a fault refuses is emulated from now on. True too if it cannot be emulated, but the
        policies may drop or clamp it instead of refusing it."""
        target, field = self.target.target, name_emulated_field(fault.place)
        if fault.place in target.opt_ins.places:
            return self._take_setting(fault)
        if field not in target.emulates or field in self._fields:
            return False
        obstacle = find_obstacle(field, self._request, exactly=target.policy.unsupported == "refuse-exactly")
        if obstacle is None:
            self._fields.add(field)
            return True
        fault.message += f"; {obstacle}" if obstacle else ""
        self.target = self.target.with_target(replace(target, emulates=target.emulates - {field}))
        return target.policy.unsupported == "drop" or target.policy.out_of_range != "error"

    def _take_setting(self, fault: Fault) -> bool:
        """As `take`, for what is emulated because the configuration asks for it."""
        target, setting = self.target.target, OPT_IN_PLACES[fault.place]
        may_drop = target.policy.unsupported == "drop"
        if setting in self._settings and target.opt_ins.tools is not None:
            setting = "tools"  # a format that is emulated by a tool
        if setting in self._settings:
            obstacle = "the target does not accept what emulates it either"
        elif self._protocol != _REWRITTEN:
            obstacle = f"dragoman emulates it only toward {_REWRITTEN}"
        elif target.policy.unsupported == "refuse-exactly":
            obstacle = "dragoman could emulate it, but not exactly"
        else:
            self._settings.add(setting)
            return True
        fault.message += f"; {obstacle}"
        self._settings.discard(setting)
        without = replace(target, opt_ins=target.opt_ins.without(setting))
        self.target = self.target.with_target(without)
        return may_drop

    def lift_lacks(self, ctx: Context) -> Context:
        """The context for the bridge, which translates what is emulated behind it although the target lacks it."""
        lifted = {str(place[0]) for place, setting in OPT_IN_PLACES.items() if setting in self._settings}
        return ctx._replace(target=replace(ctx.target, lacks=ctx.target.lacks - lifted)) if lifted else ctx

    def list_rewrites(self) -> list[Emulation]:
        """The emulations that rewrite each call, in this order."""
        opt_ins = self.target.target.opt_ins
        return [OPT_INS[name][getattr(opt_ins, name)] for name in _NEEDED if name in self._settings]

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


def rewrite_call(ctx: Context, needs: EmulationNeeds | None, protocol: str, canonical: Target) -> RewrittenCall | None:
    """The call of a context in the provider's protocol, as emulations rewrite it; None if none does. Raises Fault."""
    counts = ctx.target.opt_ins.usage
    rewrites = [] if needs is None else needs.list_rewrites()
    if counts is not None and protocol in _COUNTED:
        rewrites.append(OPT_INS["usage"][counts])
    return RewrittenCall(ctx._replace(target=canonical), rewrites) if rewrites else None
