"""The context of a call, and its request in the provider's protocol."""

from __future__ import annotations

from dragoman.adapters.call import Context
from dragoman.adapters.changes import Receipt
from dragoman.adapters.translate.bridge_interface import Bridge

from .emulation_needs import EmulationNeeds
from .guard import translate_request
from .plan import ProtocolPlan, TargetPlan

__all__ = ["create_answer_context", "create_call_context", "translate_call"]


def create_call_context(
    client: Context, receipt: Receipt, plan: ProtocolPlan, target: TargetPlan, *, is_kept: bool
) -> Context:
    """The context of a call to a target, from that of the client's side. `is_kept`: the response will be kept."""
    bridge = plan.bridge
    chosen = target.canonical if bridge is not None or is_kept else target.target
    first = bridge is not None and bridge.needs_first_choice
    validator = client.accepted_by if bridge is None else None
    _, call, _, _, request, clock, new_id, _, _, request_id, _ = client
    return Context(chosen.profile, call, receipt, chosen, request, clock, new_id, first, validator, request_id)


def create_answer_context(client: Context, ctx: Context) -> Context:
    """What the client's dialect may look at: the client's context, with the receipt and the target of the call's."""
    if ctx.profile == client.profile and ctx.request is client.request:
        return ctx
    profile, call, _, _, request, clock, new_id, _, _, request_id, _ = client
    return Context(profile, call, ctx.receipt, ctx.target, request, clock, new_id, request_id=request_id)


def translate_call(bridge: Bridge, protocol: str, ctx: Context, needs: EmulationNeeds | None) -> Context:
    """The context with its request translated; `protocol` is the client's. What is emulated behind the bridge is
    translated although the target lacks it. Raises Fault, or the Exception of a defect."""
    if needs is None:
        return translate_request(bridge, protocol, ctx)
    return translate_request(bridge, protocol, needs.lift_lacks(ctx))._replace(target=ctx.target)
