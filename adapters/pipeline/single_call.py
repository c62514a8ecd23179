"""The short way of most exchanges: one call, and a whole reply in which nothing is wrong.

A `Pipeline` and its `Attempt` handle everything that can happen, and that costs: most of what they do in an exchange is
to find out that nothing unusual happens. This module calls the same functions of the dialects in the same order, for
one call and one whole reply. What it does not know it leaves to them: `begin_call` and `take_reply` return None, and
the caller gives the same body, and then the same bytes, to a pipeline. So it can be unable to answer, but its answer is
never another one: tests hold the two against each other.

    left to the pipeline: streams, responses that continue others, batches, emulations, compressed replies, replies that
    are no plain JSON object, errors, and whatever a dialect refuses
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import orjson

from dragoman.adapters.call import NO_TARGET, Call, Context, Headers, JsonObject, Reply, new_id
from dragoman.adapters.changes import HEADER, Receipt
from dragoman.adapters.json_repair import parse_leniently
from dragoman.adapters.json_structure import REPLY_COMMAS, REPLY_VALUES, exceeds_values
from dragoman.adapters.reply_check import create_reply_check, keeps_to_limit
from dragoman.adapters.responses.stored import StoredResponse
from dragoman.adapters.routes import Route
from dragoman.adapters.validation import request_validator

from .call_context import create_answer_context, create_call_context, translate_call
from .conversation import CONVERSATIONS, Conversation, find_provider_id
from .mismatches import resolve_mismatches
from .plan import ProtocolPlan, TargetPlan

__all__ = ["SingleCall", "SingleReply", "begin_call", "has_plain_head"]

_JSON = frozenset({"application/json", "application/json; charset=utf-8"})
_OK = 200


class SingleReply(NamedTuple):
    """What the client gets, after `record` is saved, if there is one. `usage` is in canonical form, None if the
    provider tells none."""

    status: int
    headers: dict[str, str]
    data: bytes
    usage: JsonObject | None
    record: StoredResponse | None


class SingleCall(NamedTuple):
    """A request, written for its target: `call` is to be sent. `receipt` has every change so far. If `keeps`, the reply
    has a record to save."""

    call: Call
    receipt: Receipt
    route: Route
    target: TargetPlan
    plan: ProtocolPlan
    client: Context
    ctx: Context
    conversation: Conversation | None
    keeps: bool

    def take_reply(self, headers: Headers, raw: bytes) -> SingleReply | None:
        """The answer to the client, from a reply whose head `has_plain_head` and whose bytes have all arrived; None if
        it needs an `Attempt`."""
        try:
            return self._read(headers, raw)
        except Exception:  # noqa: BLE001 - the attempt that reads the same bytes finds the same, and says it
            return None

    def _read(self, headers: Headers, raw: bytes) -> SingleReply | None:
        if raw[:1] != b"{" or exceeds_values(raw, REPLY_VALUES, REPLY_COMMAS):
            return None
        body, repairs = parse_leniently(raw)
        if repairs:
            return None
        plan, receipt, ctx, request = self.plan, self.receipt, self.ctx, self.client.request
        hub = plan.called.read_reply(Reply(_OK, body, headers, raw), ctx)
        if plan.bridge is not None:
            hub = plan.bridge.reply(hub, request, ctx)
        policy, usage, protocol = self.target.target.policy.replies, hub.get("usage"), self.route.protocol
        if not keeps_to_limit(protocol, request, usage):
            check = create_reply_check(protocol, request, policy)
            if check is not None:
                check.add_reply(hub)
                if resolve_mismatches(check, self.target.provider, policy, receipt) is not None:
                    return None
        conversation, record, shown = self.conversation, None, hub
        if conversation is not None:
            shown = conversation.with_store_fields(hub, receipt)
        reply = self.route.served.write_reply(shown, create_answer_context(self.client, ctx))
        data = orjson.dumps(reply.body)
        if conversation is not None and self.keeps:
            written = data if reply.body is shown else None
            record = conversation.create_record(shown, find_provider_id(hub), written)
        made = {} if (changes := receipt.header()) is None else {HEADER: changes}
        for name in self.target.dialect.forwarded:
            if name in headers:
                made[name] = headers[name]
        return SingleReply(reply.status, {**made, **reply.headers}, data, usage, record)


def has_plain_head(status: int, headers: Headers, most: int) -> bool:
    """Whether a reply may be taken by `SingleCall.take_reply`, as far as its head tells: a success in plain JSON, of at
    most so many bytes if it says how many there are."""
    if status != _OK or headers.get("content-type") not in _JSON or "content-encoding" in headers:
        return False
    length = headers.get("content-length")
    return length is None or int(length) <= most


def begin_call(
    route: Route,
    client: Call,
    target: TargetPlan,
    request_id: str,
    clock: Callable[[], float] = time.time,
    new_id: Callable[[str], str] = new_id,
    *,
    has_store: bool = False,
) -> SingleCall | None:
    """The call for a client's request, whose body is parsed; None if it needs a `Pipeline`. The other arguments are as
    those of a pipeline."""
    protocol = route.protocol
    plan = target.protocols.get(protocol)
    if plan is None or plan.batching is not None or route.shared:
        return None
    receipt, conversation, keeps = Receipt(), None, False
    ctx = Context(route.profile, client, receipt, NO_TARGET, {}, clock, new_id, request_id=request_id)
    try:
        request = route.served.read_request(client, ctx)
        if request.get("stream") is True:
            return None
        receipt.mark_canonical()
        if protocol in CONVERSATIONS:
            conversation = Conversation(request, has_store=has_store, can_retrieve=route.keeps_responses)
            keeps = conversation.keeps
            if conversation.recall() is not None:
                return None
        validator, profile = request_validator(route.dialect.name, protocol, route.profile), route.profile
        client_ctx = Context(
            profile, client, receipt, NO_TARGET, request, clock, new_id, accepted_by=validator, request_id=request_id
        )
        called = create_call_context(client_ctx, receipt, plan, target, is_kept=keeps)
        if conversation is not None and keeps:
            called = conversation.continue_for(called, target.provider, may_keep=False)  # it continues nothing
        if called.target.opt_ins.usage is not None:
            return None
        if plan.bridge is not None:
            called = translate_call(plan.bridge, protocol, called, None)
        call = plan.called.write_request(called.request, called)
    except Exception:  # noqa: BLE001 - the pipeline that reads the same body finds the same, and says it
        return None
    if call.body.get("stream") is True:
        return None
    return SingleCall(call, receipt, route, target, plan, client_ctx, called, conversation, keeps)
