"""Answering with a stream: the first target that says something is the one whose stream goes on to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from aiohttp.web_response import StreamResponse

from dragoman.adapters.call import JsonObject
from dragoman.adapters.chat.restream import restream
from dragoman.adapters.common.completeness import outputs_of_reply
from dragoman.adapters.common.parameters import wants_usage
from dragoman.adapters.completions.restream import restream_text
from dragoman.adapters.faults import Fault
from dragoman.adapters.responses.restream import restream_response
from dragoman.adapters.streams import Chunk, DeltaRun, Output, StreamTranslator, StreamWriter
from dragoman.proxy.config.models import Server
from dragoman.proxy.http.stream_response import Downstream
from dragoman.proxy.routing.state import Candidate
from dragoman.proxy.telemetry.log import Mask
from dragoman.proxy.upstreams.interface import Incoming

from .attempts import Asked, Attempt, first_answer, open_upstream
from .batch import whole_reply
from .replies import SSE, answer_headers, read_reply, served_context
from .stream_pump import outputs_of
from .unexpected import Unforeseen

__all__ = ["StreamAnswer", "translated"]


class StreamAnswer:
    """One stream to one client."""

    def __init__(self, asked: Asked, server: Server, mask: Mask) -> None:
        self._asked = asked
        self._mask = mask
        self._writer: StreamWriter = asked.route.served.write_stream(asked.ctx)
        self._attempt: Attempt | None = None
        self._incoming: Incoming | None = None
        self._guard: Unforeseen | None = None
        ping = server.keep_alive if self._writer.comments else None
        self._down = Downstream(
            asked.request, asked.clock, self._headers, server.hold_headers, server.write_stall, ping
        )

    @property
    def response(self) -> StreamResponse | None:
        """Once there is one, the exchange is committed: from then on only `fail` can tell of a fault."""
        return self._down.response

    async def send(self, candidates: Iterator[Candidate]) -> None:
        """Raises Fault for what went wrong before the reader's terminal, ClientGone."""
        try:
            await first_answer(self._asked, candidates, self._ask, lambda: self._down.committed)
        finally:
            self._down.close()

    async def fail(self, fault: Fault) -> None:
        """End the stream with an error event. Raises ClientGone."""
        await self._write([fault])
        await self._down.end(broken=self._writer.aborts)

    async def _ask(self, attempt: Attempt) -> None:
        asked = self._asked
        self._attempt, self._incoming = attempt, None
        self._guard = Unforeseen(asked, attempt)
        self._writer = asked.route.served.write_stream(served_context(asked, attempt))
        if attempt.parts:
            return await self._joined(attempt)
        asked.clock.enter("first_token", attempt.candidate.provider.timeouts.first_token)
        incoming = self._incoming = await open_upstream(asked, attempt)
        try:
            if incoming.status >= 400 or incoming.media_type not in (SSE, ""):
                await self._tell(attempt, await read_reply(asked, attempt, incoming))
            else:
                await self._relay(attempt, incoming)
                await self._down.end(broken=self._writer.aborts)
        except BaseException:
            incoming.close()
            raise
        incoming.finish()

    async def _joined(self, attempt: Attempt) -> None:
        """Several replies that come whole, as one stream."""
        self._asked.clock.enter("answer", attempt.candidate.provider.timeouts.total)
        reply, self._incoming = await whole_reply(self._asked, attempt)
        await self._tell(attempt, reply)

    async def _tell(self, attempt: Attempt, reply: JsonObject) -> None:
        """A reply that came whole."""
        asked = self._asked
        with Unforeseen(asked, attempt):
            events = _RESTREAM[asked.route.protocol](reply, asked.ctx.request)
        await self._write(outputs_of_reply(events))
        await self._down.end(broken=self._writer.aborts)

    async def _relay(self, attempt: Attempt, incoming: Incoming) -> None:
        asked, bridge = self._asked, attempt.bridge
        reader = attempt.called.read_stream(attempt.ctx)
        translator = None if bridge is None else bridge.stream(asked.ctx.request, attempt.ctx)
        timeouts = attempt.candidate.provider.timeouts
        async for outputs in outputs_of(incoming, reader, asked.clock, timeouts, self._blamed):
            if translator is not None:
                try:
                    outputs = translated(translator, outputs)
                except Exception as error:  # noqa: BLE001 - nobody foresaw it
                    raise self._blamed(error) from None
                if not outputs:
                    continue
            if isinstance(outputs[0], Fault) and not self._down.written:
                raise outputs[0]
            await self._write(outputs)

    async def _write(self, outputs: list[Output]) -> None:
        note, turn = self._asked.note, self._asked.turn
        only_text = len(outputs) == 1 and isinstance(outputs[0], DeltaRun)
        if turn is not None and not only_text:
            outputs = await turn.passed(outputs)
        try:
            data = self._written(outputs[0]) if only_text else b"".join(map(self._written, outputs))
        except Exception as error:  # noqa: BLE001 - nobody foresaw it
            raise self._blamed(error) from None
        last = outputs[-1]
        if isinstance(last, Fault):
            note.failed(last)
            data = self._mask(data)
            if turn is not None:
                note.cause = await turn.failed(self._writer, self._mask) or note.cause
        if note.events and note.first_token_ms is None:
            note.first_token_ms = note.elapsed_ms()
        if data:
            await self._down.write(data)
            note.bytes = self._down.written

    def _written(self, output: Output) -> bytes:
        note = self._asked.note
        if isinstance(output, DeltaRun):
            note.events += len(output.texts)
        elif isinstance(output, Chunk):
            note.events += 1
            if usage := usage_of(output.body):
                note.usage = usage
        return self._writer.write(output)

    def _blamed(self, error: Exception) -> Exception:
        return error if self._guard is None else self._guard.fault(error)

    def _headers(self) -> dict[str, str]:
        headers = answer_headers(self._asked, self._attempt, self._incoming)
        headers["Content-Type"] = self._writer.content_type
        headers["Cache-Control"] = "no-cache"
        headers["X-Accel-Buffering"] = "no"
        return headers


def translated(translator: StreamTranslator, outputs: list[Output]) -> list[Output]:
    """Outputs of the provider's protocol in the client's."""
    return [made for output in outputs for made in translator.feed(output)]


def usage_of(event: JsonObject) -> JsonObject | None:
    """The usage that a chat chunk tells, or the response in a Responses event."""
    response = event.get("response")
    usage: JsonObject | None = (response if isinstance(response, dict) else event).get("usage")
    return usage


_RESTREAM: Mapping[str, Callable[[JsonObject, JsonObject], list[JsonObject]]] = {
    "chat": lambda reply, request: restream(reply, wants_usage(request)),
    "completions": lambda reply, request: restream_text(reply, wants_usage(request)),
    "responses": lambda reply, request: restream_response(reply),
}
"""A reply that came whole, as the events of its protocol."""
