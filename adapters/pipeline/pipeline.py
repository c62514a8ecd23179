"""One exchange without any input or output: a client's call in, calls to providers out; their replies in, bytes out.

Theory of operation, in the manner of h11. A `Pipeline` is the request half: it reads one client's request into
canonical form, says what has to be recalled from a store, and prepares an `Attempt` for each target that the caller
chooses. An attempt is the reply half: it is fed status, headers and bytes of each reply, and gives the bytes for the
client. Nothing here waits, touches the network, or knows what time it is but by the clock that it was given.

    pipeline = Pipeline(route, call)
    pipeline.receive(body)                             the canonical request, or a Fault
    pipeline.start_conversation() -> recall            Responses only: what to fetch; then pipeline.supply(...)
    attempt = pipeline.prepare(plan)                   calls to make, or a Fault; any number of targets
    attempt.start_reply(...), feed(...), close(...)    bytes for the client, and rarely further calls
    attempt.outcome                                    open, complete, or failed with a Fault
    pipeline.render_fault(fault)                       what the client gets if no attempt completes
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from dragoman.adapters.call import NO_TARGET, Call, Context, JsonObject, Reply, new_id
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.json_structure import VALUE_LIMIT
from dragoman.adapters.jsontext import BOM, read_object, read_right_object
from dragoman.adapters.long_values import LongValue
from dragoman.adapters.responses.stored import StoredResponse
from dragoman.adapters.routes import Route
from dragoman.adapters.streams import StreamWriter
from dragoman.adapters.validation import request_validator

from .attempt import Attempt
from .conversation import CONVERSATIONS, Conversation, Recall
from .guard import DefectReporter, UnexpectedErrorGuard, ignore_defect
from .plan import TargetPlan

__all__ = ["Pipeline", "render_fault"]


def _no_task(model: str) -> None:
    """No model is configured for one task."""


class Pipeline:
    """The request half of one exchange. `route` says which dialect and protocol the client speaks, `call` has its
    method, path, query and headers; its body is empty."""

    __slots__ = ("_conversation", "_ctx", "_has_store", "_receipt", "_report", "route")

    def __init__(
        self,
        route: Route,
        call: Call,
        *,
        has_store: bool = False,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[str], str] = new_id,
        report_defect: DefectReporter = ignore_defect,
        request_id: str = "",
    ) -> None:
        """`has_store`: the caller can save and recall responses. `clock` gives seconds since 1970. `request_id` is the
        id of the exchange, if it has one."""
        self.route = route
        self._receipt = Receipt()
        self._ctx = Context(route.profile, call, self._receipt, NO_TARGET, {}, clock, new_id, request_id=request_id)
        self._has_store = has_store
        self._conversation: Conversation | None = None
        self._report = report_defect

    @property
    def request(self) -> JsonObject:
        """The request in canonical form; empty before `receive`."""
        return self._ctx.request

    @property
    def call(self) -> Call:
        """The client's call."""
        return self._ctx.call

    @property
    def receipt(self) -> Receipt:
        """What reading the request changed. An attempt has a receipt of its own that begins with this one."""
        return self._receipt

    @property
    def wants_stream(self) -> bool:
        return self._ctx.request.get("stream") is True

    @property
    def keeps_response(self) -> bool:
        """Whether the exchange saves its response."""
        return self._conversation is not None and self._conversation.keeps

    @property
    def is_stateful(self) -> bool:
        """Whether the exchange saves its response, or continues earlier ones."""
        return self._conversation is not None and self._conversation.is_stateful

    @property
    def deployment(self) -> str | None:
        """The deployment that the client picked by a header of its dialect."""
        name = self.route.dialect.deployment_header
        return self.call.headers.get(name) if name else None

    def receive(
        self, body: bytes, task: Callable[[str], str | None] = _no_task, value_limit: int = VALUE_LIMIT
    ) -> JsonObject:
        """Read the request. `task` says what a model is configured for, if an address serves several protocols;
        `value_limit` is the most values that the body may have (`json_structure.exceeds_values`).

        Returns the canonical request. Raises Fault, its path the client's.
        """
        self._record_byte_order_mark(body)
        return self.receive_object(read_object(body, value_limit), task)

    def receive_right(
        self, body: bytes, task: Callable[[str], str | None], long_values: Sequence[LongValue]
    ) -> JsonObject:
        """As `receive`, for a body that is known to be right JSON of not too many values (`read_right_object`)."""
        self._record_byte_order_mark(body)
        return self.receive_object(read_right_object(body, long_values), task)

    def _record_byte_order_mark(self, body: bytes) -> None:
        if body.startswith(BOM):
            self.receipt.record_drop((), "a byte order mark preceded the body", "form")

    def receive_object(self, body: JsonObject, task: Callable[[str], str | None] = _no_task) -> JsonObject:
        """As `receive`, for a body that is parsed already."""
        client, receipt = self._ctx, self._receipt
        method, path, _, query, headers = client.call
        call = Call(method, path, body, query, headers)
        self.route = route = self.route.resolve(call, task)
        hub = route.served.read_request(call, client)
        receipt.mark_canonical()
        validator = request_validator(route.dialect.name, route.protocol, route.profile)
        self._ctx = client._replace(profile=route.profile, call=call, request=hub, accepted_by=validator)
        return hub

    def start_conversation(self) -> Recall | None:
        """What the request needs from a store, if its protocol continues earlier responses. Raises Fault."""
        if self.route.protocol not in CONVERSATIONS:
            return None
        self._conversation = Conversation(
            self.request, has_store=self._has_store, can_retrieve=self.route.keeps_responses
        )
        return self._conversation.recall()

    def supply(self, chain: Sequence[StoredResponse] | None, holders: Sequence[StoredResponse]) -> None:
        """What was recalled: the chain of earlier responses, oldest first, None if a link is missing; and the responses
        that hold the items that the request refers to. Raises Fault."""
        if self._conversation is not None:
            self._conversation.supply(chain, holders)

    def prepare(self, plan: TargetPlan) -> Attempt:
        """The request, written for a target. Raises Fault if the target cannot serve it; its path is the client's."""
        attempt = self._create_attempt(plan)
        attempt.write_calls()
        return attempt

    def expect_reply(self, plan: TargetPlan, request: JsonObject) -> Attempt:
        """An attempt that reads one reply, number 0, without having called. `request` is what the client would have
        asked, in canonical form. Raises Fault."""
        self._ctx = self._ctx.with_request(request)
        attempt = self._create_attempt(plan)
        attempt.expect_reply()
        return attempt

    def _create_attempt(self, plan: TargetPlan) -> Attempt:
        guard = UnexpectedErrorGuard(plan.provider, self._report)
        return Attempt(self.route, self._ctx, plan, self._conversation, guard)

    def render_fault(self, fault: Fault) -> Reply:
        """The fault in the client's dialect."""
        return self.route.served.write_fault(fault, self._ctx)

    def open_stream(self) -> StreamWriter:
        """A writer for a stream that no attempt has begun. Raises Fault if the protocol has no streams."""
        return self.route.served.write_stream(self._ctx)


def render_fault(route: Route, fault: Fault, call: Call | None = None, request_id: str = "") -> Reply:
    """The fault in the client's dialect, for a request that has no pipeline."""
    return Pipeline(route, call or Call("POST", "", {}), request_id=request_id).render_fault(fault)
