"""A stream as a whole reply, for a client that asked for no stream and a provider that answered with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.assembly import assemble_chat
from dragoman.adapters.completions.assembly import assemble_text
from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.accumulator import assemble_message
from dragoman.adapters.streams import Chunk, Output, PartlyRead, StreamReader, expand

from .plan import ProtocolPlan, to_canonical

__all__ = ["StreamAssembler"]

_USAGE = {"stream": True, "stream_options": {"include_usage": True}}


class StreamAssembler:
    """Reads one stream of the provider's, and keeps what it holds until the end. Changes are recorded in `ctx`. The
    pieces can only be joined in canonical form, so they have it under every policy but `strict`."""

    __slots__ = ("_chunks", "_join", "_reader", "_receipt")

    def __init__(self, plan: ProtocolPlan, ctx: Context) -> None:
        """Raises Fault if the provider's protocol has no streams, or the policy is `strict`."""
        join = _JOIN.get(plan.protocol)
        if join is None or ctx.target.policy.replies == "strict":
            text = "the provider sent a stream, which was not asked for"
            raise Fault("upstream_invalid_response", text, code="upstream_unexpected_stream")
        self._join = join
        self._receipt = ctx.receipt
        self._chunks: list[JsonObject] = []
        request = {**ctx.request, **_USAGE}
        self._reader: StreamReader = plan.called.read_stream(
            ctx._replace(request=request, target=to_canonical(ctx.target))
        )

    @property
    def is_complete(self) -> bool:
        """True once the stream has ended: nothing more is read of it."""
        return self._reader.has_ended

    def receive(self, data: bytes) -> None:
        """Take bytes of the stream. Raises Fault if it reports one; nothing of a stream that breaks is returned."""
        try:
            outputs = self._reader.receive(data)
        except PartlyRead as partly:
            raise partly.error from None
        self._keep(outputs)

    def close(self, cut: Fault | None = None) -> JsonObject:
        """The reply in hub form; `cut` is the fault of bytes that did not end cleanly. Raises Fault if the stream is
        not complete."""
        self._keep(self._reader.close(cut))
        self._receipt.violations += 1
        self._receipt.record_conversion((), "the provider sent a stream, which was not asked for: it becomes one reply")
        return self._join(self._chunks)

    def _keep(self, outputs: list[Output]) -> None:
        for output in expand(outputs):
            if isinstance(output, Fault):
                raise output
            if isinstance(output, Chunk):
                self._chunks.append(output.body)


def _take_response(events: Sequence[JsonObject]) -> JsonObject:
    """The last event of a complete Responses stream holds the whole response."""
    response: JsonObject = events[-1]["response"]
    return response


_JOIN: Mapping[str, Callable[[Sequence[JsonObject]], JsonObject]] = {
    "chat": assemble_chat,
    "completions": assemble_text,
    "responses": _take_response,
    "messages": assemble_message,
}
