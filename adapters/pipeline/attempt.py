"""One attempt: the request written for one target, and what comes back written for the client.

The caller makes the `calls`, feeds what comes back (`start_reply`, `feed`, `resume`, `close`) and does what each
`Output` says. It can end the attempt with a fault of its own (`fail`). What happens is decided by the table in
transitions.py; the methods here classify what came in and carry out the action. No method raises for what an upstream
sent: that is in `outcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.adapters.call import Context, Headers
from dragoman.adapters.changes import HEADER, Receipt
from dragoman.adapters.emulation.calls import EmulatedCalls
from dragoman.adapters.emulation.rewritten_call import RewrittenCall
from dragoman.adapters.faults import Fault, join_faults
from dragoman.adapters.reply_check import ReplyCheck, create_reply_check
from dragoman.adapters.routes import Route
from dragoman.adapters.streams import Chunk, DeltaRun, End, PartlyRead
from dragoman.adapters.streams import Output as StreamOutput

from .answer_writer import STREAM_HEADERS, Answer, AnswerWriter, PartlyWritten
from .call_context import create_answer_context, create_call_context, translate_call
from .conversation import Conversation, find_provider_id
from .emulated_reader import CallPart, create_reader
from .emulation_needs import EmulationNeeds, rewrite_call, split_request
from .guard import UnexpectedErrorGuard
from .mismatches import resolve_mismatches
from .outcome import COMPLETE, NOTHING, OPEN, Outcome, Output, PlannedCall
from .plan import ProtocolPlan, TargetPlan
from .refusals import find_refusals
from .reply_reader import ReplyReader
from .restream import CLOSING_EVENTS, stream_whole_reply
from .stream_usage import ask_for_usage, sum_stream_usage
from .transitions import TRANSITIONS, Action, Input, State

__all__ = ["Attempt"]


class Attempt:
    """Made by `Pipeline.prepare`.

    `calls` are the first calls to make; if there are none, `answer_without_calls` gives the answer. `outcome` says how
    far the attempt is. `answer` says what the client has got: `has_begun`, `status`, `events`, `usage`.
    `headers` are those of the client's response, once there are bytes for it.
    """

    answer: AnswerWriter  # made with the calls
    calls: tuple[PlannedCall, ...] = ()
    outcome: Outcome = OPEN

    _state: State = "open"
    _run_check: ReplyCheck | None = None
    _round: list[ReplyReader]  # those of the calls under way
    _ctx: Context  # that of the first call
    _held: Answer  # between "hold" and "release"
    _needs: EmulationNeeds | None = None  # if the target has refused anything
    _emulated: EmulatedCalls | None = None

    def __init__(
        self,
        route: Route,
        client: Context,
        target: TargetPlan,
        conversation: Conversation | None,
        guard: UnexpectedErrorGuard,
    ) -> None:
        """`client` is the context of the client's side. Raises Fault if the target cannot serve its protocol."""
        self._route = route
        self._client = client
        self._target = target
        self._plan: ProtocolPlan = target.for_protocol(route.protocol)
        self._conversation = conversation
        self._keeps = conversation is not None and conversation.keeps
        self._guard = guard
        self._readers: list[ReplyReader] = []
        check = self._check = create_reply_check(route.protocol, client.request, target.target.policy.replies)
        if check is not None and check.wishes.need_runs:
            self._run_check = check
        self.wants_stream = client.request.get("stream") is True

    def write_calls(self) -> None:
        """Write the request for the target: `calls` has the calls to make. Raises Fault, its path the client's."""
        try:
            self._write_calls(self._client)
        except Fault as fault:
            self._needs = EmulationNeeds(self._target, self._plan, self._client.request)
            found = find_refusals(fault, self._client, self._route.protocol, self._write_calls, self._needs.take)
            if found:
                raise join_faults(found) from None

    def _write_calls(self, client: Context) -> None:
        plan, conversation = self._plan, self._conversation
        if self._needs is not None:
            self._target = self._needs.target
        ctx = create_call_context(client, client.receipt.fork(), plan, self._target, is_kept=self._keeps)
        if conversation is not None:
            may_keep = plan.bridge is None and self._target.dialect.keeps_responses
            ctx = conversation.continue_for(ctx, self._target.provider, may_keep)
        self._set_context(ctx)
        if plan.batching is None and self._needs is None:
            self.calls = (self._write_call(ctx),)
        else:
            parts, self._emulated = split_request(ctx, self._needs, plan.batching, self._target.canonical)
            self.calls = tuple([self._write_call(part, position) for position, part in enumerate(parts)])
            if self._emulated is not None:
                self._emulated.absorb_receipts()
        self._round = self._readers[len(self._readers) - len(self.calls) :]

    def answer_without_calls(self) -> Output:
        """The answer, if there are no calls to make."""
        try:
            return self._finish_replies()
        except Exception as error:  # noqa: BLE001 - as in feed
            return self._fail_with(error)

    def expect_reply(self) -> None:
        """Read one reply, number 0, without a call that asked for it."""
        client, target = self._client, self._target
        self._set_context(create_call_context(client, client.receipt, self._plan, target, is_kept=self._keeps))
        self._round = [self._add_reader(self._ctx)]

    @property
    def receipt(self) -> Receipt:
        """Every change of this attempt."""
        return self._ctx.receipt

    @property
    def headers(self) -> dict[str, str]:
        """What was lost on the way, and what the provider's own clients rely on; then a stream's or the reply's own."""
        headers: dict[str, str] = {}
        if (changes := self._ctx.receipt.header()) is not None:
            headers[HEADER] = changes
        replied = self._round[0].headers if self._round else {}
        headers |= {name: replied[name] for name in self._target.dialect.forwarded if name in replied}
        return {**headers, **(STREAM_HEADERS if self.wants_stream else self.answer.reply_headers)}

    def is_reading(self, call: int) -> bool:
        """True while more of the reply to this call is wanted."""
        return not self._readers[call].has_ended and self._state in ("open", "streaming")

    def is_collecting(self, call: int) -> bool:
        """True if bytes of the reply to this call are only kept until it ends."""
        return self._readers[call].is_collecting

    def start_reply(self, call: int, status: int, headers: Headers) -> Output:
        """Take the head of a reply. Header names are looked up in lower case."""
        reader = self._readers[call]
        streams = self.wants_stream and reader.may_stream and (self._emulated is None or self._emulated.can_stream)
        try:
            reader.start(status, headers, wants_stream=streams)
        except Exception as error:  # noqa: BLE001 - whatever an upstream's bytes cause is its fault
            return self._fail_with(error)
        return NOTHING

    def feed(self, call: int, data: bytes) -> Output:
        """Take bytes of a reply, in pieces of any size."""
        reader = self._readers[call]
        try:
            outputs = reader.receive(data)
            if len(outputs) == 1 and self._state == "streaming" and type(outputs[0]) is DeltaRun:
                if self._run_check is not None:
                    self._run_check.add_run(outputs[0])
                output = Output(self.answer.write_run(outputs[0]))  # the table's most frequent row
            elif outputs:
                output = self._take(outputs)
            else:
                output = self.close(call) if reader.is_assembled else NOTHING
        except Exception as error:  # noqa: BLE001 - as above
            return self._fail_with(error)
        return output._replace(more=True) if reader.is_pending else output

    def resume(self, call: int) -> Output:
        """Go on after an output that said `more`."""
        return self.feed(call, b"")

    def close(self, call: int, cut: Fault | None = None) -> Output:
        """The bytes of a reply ended; `cut` says how, if not cleanly."""
        reader = self._readers[call]
        if reader.has_ended:
            return NOTHING
        try:
            outputs = reader.close(cut)
            if reader.is_stream:
                return self._take(outputs) if outputs else NOTHING
            if reader.further is not None:
                return self._follow_up(reader, reader.further)
            is_last = len(self._round) == 1 or all(one.has_ended for one in self._round)
            return self._finish_replies() if is_last else NOTHING
        except Exception as error:  # noqa: BLE001 - as above
            return self._repeat_unasked(call, error) or self._fail_with(error)

    def confirm_save(self) -> Output:
        """The record of the last output is saved."""
        try:
            return self._advance("saved")
        except Exception as error:  # noqa: BLE001 - as above
            return self._fail_with(error)

    def reject_save(self, fault: Fault) -> Output:
        """The record of the last output could not be saved. Nothing more is saved of this attempt."""
        self._keeps = False
        return self._advance("fault", fault)

    def fail(self, fault: Fault) -> Output:
        """End the attempt for a reason of the caller's: a deadline, a shutdown."""
        return self._advance("fault", fault)

    # Calls

    def _set_context(self, ctx: Context) -> None:
        """`ctx` is the context of the call. The client's dialect looks at the client's profile and request."""
        self._ctx = ctx
        self.answer = AnswerWriter(self._route, create_answer_context(self._client, ctx))

    def _add_reader(self, ctx: Context, position: int = 0, rewritten: RewrittenCall | None = None) -> ReplyReader:
        provider, request, emulated = self._target.provider, self._client.request, self._emulated
        part = None if emulated is None else CallPart(emulated, position, self._route.protocol)
        self._readers.append(create_reader(self._plan, provider, ctx, request, rewritten, part))
        return self._readers[-1]

    def _write_call(self, ctx: Context, position: int = 0) -> PlannedCall:
        plan, rewritten = self._plan, None
        try:
            if plan.bridge is not None:
                ctx = translate_call(plan.bridge, self._route.protocol, ctx, self._needs)
            if self._needs is not None or ctx.target.opt_ins.usage is not None:
                rewritten = rewrite_call(ctx, self._needs, plan.protocol, self._target.canonical)
            return self._write_rewritten(ctx if rewritten is None else rewritten.ctx, position, rewritten)
        except Fault as fault:
            fault.place = ctx.receipt.unmap_to_canonical(fault.path)
            known = None if plan.bridge is None and rewritten is None else ctx.call.body
            raise fault.locate(ctx.receipt, known) from None

    def _write_rewritten(self, ctx: Context, position: int, rewritten: RewrittenCall | None) -> PlannedCall:
        """Write a request in the provider's protocol. Raises Fault, its path the provider's."""
        call = self._plan.called.write_request(ctx.request, ctx)
        call, without = ask_for_usage(call, ctx, self._plan.protocol, self._client)
        self._add_reader(ctx, position, rewritten).call_without_usage = without
        return PlannedCall(len(self._readers) - 1, call, call.body.get("stream") is True, ctx.receipt)

    def _repeat_unasked(self, number: int, error: Exception) -> Output | None:
        """Make a call without the option for usage if that is what the provider refuses, as `error` says; else None."""
        reader = self._readers[number]
        call = reader.call_without_usage
        if call is None or self._state not in ("open", "streaming") or not reader.refuses_usage(error):
            return None
        position = self._round.index(reader)
        again = self._round[position] = self._add_reader(reader.ctx, position, reader.rewritten)
        again.is_without_usage = True
        return Output(calls=(PlannedCall(len(self._readers) - 1, call, True, reader.receipt),))

    def _follow_up(self, reader: ReplyReader, rewritten: RewrittenCall) -> Output:
        """Make the further call that a reply makes necessary, in place of the one that it answers."""
        position = self._round.index(reader)
        call = self._write_rewritten(rewritten.ctx, position, rewritten)
        self._round[position] = self._readers[-1]
        return Output(calls=(call,))

    # Replies

    def _take(self, outputs: list[StreamOutput]) -> Output:
        """Outputs of a stream in the client's protocol. A fault or the end is the last of them."""
        last = outputs[-1]
        if self._check is not None:
            self._check.add_outputs(outputs)
            if isinstance(last, End) and (broken := self._compare_with_request()) is not None:
                closing = outputs[-2] if len(outputs) > 1 else None
                if isinstance(closing, Chunk) and closing.body.get("type") in CLOSING_EVENTS:
                    outputs = outputs[:-1]  # the event that would say that the response is complete
                outputs[-1] = last = broken
        if isinstance(last, Fault):
            before = self._advance("outputs", outputs[:-1]) if len(outputs) > 1 else NOTHING
            after = self._advance("fault", last)
            return after._replace(data=before.data + after.data) if before.data else after
        if isinstance(last, End):
            self.answer.usage = self.answer.usage or sum_stream_usage(one.usage for one in self._round) or last.usage
            return self._advance("kept_end" if self._keeps else "end", outputs)
        return self._advance("outputs", outputs)

    def _finish_replies(self) -> Output:
        """Every reply of the round is there: they become one answer."""
        parts = [reader.reply for reader in self._round if reader.reply is not None]
        reply = parts[0] if self._emulated is None else self._emulated.join(parts)
        for reader in self._round:
            reader.reply = None  # it may be large, and the client may read its bytes slowly
        self.answer.usage = reply.get("usage")
        if self.wants_stream:
            return self._take(stream_whole_reply(self._route.protocol, reply, self._client.request, self._ctx))
        if self._check is not None:
            self._check.add_reply(reply)
            if (broken := self._compare_with_request()) is not None:
                raise broken
        return self._advance("kept_end" if self._keeps else "end", reply)

    def _compare_with_request(self) -> Fault | None:
        policy, check = self._target.target.policy.replies, self._check
        return None if check is None else resolve_mismatches(check, self._target.provider, policy, self.receipt)

    def _fail_with(self, error: Exception) -> Output:
        """End the attempt because of an exception. What was written before it goes to the client first."""
        if isinstance(error, PartlyRead):
            return self._fail_after(error.outputs, error.error)
        if isinstance(error, PartlyWritten):
            self._state = "streaming"
            ended = self._fail_with(error.error)
            return ended._replace(data=error.data + ended.data)
        fault = self._guard.as_upstream_fault(error).with_traceback(None)  # its frames refer to it: a cycle
        conversation = self._conversation if self._state == "open" else None
        if conversation is not None and conversation.forget_provider_id(fault):
            try:
                return self._advance("lost")
            except Fault as refused:  # the target does not take the whole input
                fault = refused
        return self._advance("fault", fault)

    def _fail_after(self, outputs: list[StreamOutput], error: Exception) -> Output:
        """End the attempt because of an exception, after these outputs."""
        try:
            before = self._take(outputs) if outputs else NOTHING
        except Exception as earlier:  # noqa: BLE001 - as above
            return self._fail_with(earlier)
        after = self._fail_with(error)
        return after._replace(data=before.data + after.data)

    # Actions

    def _advance(self, given: Input, payload: Any = None) -> Output:
        """Carry out the action for an input. The state changes only if the action succeeds, and "open" lasts until
        there are bytes for the client."""
        state, action = TRANSITIONS[self._state, given]
        output = _ACTIONS[action](self, payload)
        if output.data or given != "outputs":
            self._state = state
        return output

    def _write(self, answer: Answer) -> Output:
        is_end = isinstance(answer, dict) or isinstance(answer[-1], End)
        data = self.answer.write(answer if self._conversation is None else self._with_store_fields(answer))
        if is_end:
            self.outcome = COMPLETE
        return Output(data)

    def _with_store_fields(self, answer: Answer) -> Answer:
        conversation, receipt = self._conversation, self.receipt
        assert conversation is not None
        if isinstance(answer, dict):
            return conversation.with_store_fields(answer, receipt)
        return [conversation.replace_fields(output, receipt) for output in answer]

    def _hold(self, answer: Answer) -> Output:
        """Keep the end of the answer back until its record is saved."""
        conversation = self._conversation
        assert conversation is not None
        if isinstance(answer, dict):
            self._held = conversation.with_store_fields(answer, self.receipt)
            return Output(record=conversation.create_record(self._held, find_provider_id(answer)))
        *before, last, end = answer
        assert isinstance(last, Chunk)
        shown = conversation.with_store_fields(last.body["response"], self.receipt)
        written = self.answer.encode_response(shown)
        shown_before = [conversation.replace_fields(output, self.receipt) for output in before]
        self._held = [*shown_before, Chunk({**last.body, "response": shown}), end]
        return Output(record=conversation.create_record(shown, find_provider_id(last.body["response"]), written))

    def _release(self, _: None) -> Output:
        output = Output(self.answer.write(self._held))
        self.outcome = COMPLETE
        return output

    def _repeat_call(self, _: None) -> Output:
        self.write_calls()
        return Output(calls=self.calls)

    def _report(self, fault: Fault) -> Output:
        if self._emulated is not None:
            self._emulated.absorb_receipts()
        self.outcome = Outcome("failed", fault)
        return NOTHING

    def _write_fault(self, fault: Fault) -> Output:
        """An error event ends the stream. What was kept of the answer is kept with it."""
        self.outcome = Outcome("failed", fault)
        data, failed = self.answer.write_fault(fault), self.answer.failed_response
        if failed is None or not self._keeps or self._conversation is None:
            return Output(data)
        return Output(data, self._conversation.create_record(failed))


_ACTIONS: Mapping[Action, Callable[[Attempt, Any], Output]] = {
    "write": Attempt._write,
    "hold": Attempt._hold,
    "release": Attempt._release,
    "repeat_call": Attempt._repeat_call,
    "report": Attempt._report,
    "write_fault": Attempt._write_fault,
    "ignore": lambda _, __: NOTHING,
}
