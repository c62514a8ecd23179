"""One turn of a conversation over Responses: what came before it, and what is kept of it.

Before. A request may continue a response by its `previous_response_id`, and refer to items of earlier responses. The
provider that made those, where it keeps them too, is told its own ids. Every other provider gets the items themselves:
what came before stands in the input (input, output, input, output, ...), and behind it what is new. Instructions are
not carried over. What one provider has sealed (the encrypted content of reasoning) goes to no other.

After. The client sees one id, which is ours, and a `store` that is true exactly where the response can be asked for
again. A response is kept before its last event, or its whole reply, is sent: a client that has read it to the end can
rely on it. One that failed after it had begun is kept too. Where it cannot be kept, the exchange fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path
from dragoman.adapters.responses.events import TERMINALS
from dragoman.adapters.responses.writer import ResponsesStreamWriter
from dragoman.adapters.streams import Chunk, Output, StreamWriter
from dragoman.proxy.http.deadline import Clock
from dragoman.proxy.telemetry.log import Mask

from .history import again, check_results, is_cut_off, is_sealed, items_of, reference, replayed
from .stores.interface import OverLimit, ResponseStore, StoredResponse, StoreError, new_response_id

__all__ = ["MOST_TURNS", "PATIENCE", "Turn", "store_fault"]

MOST_TURNS = 256
"""Responses in a conversation that is continued by `previous_response_id`."""

PATIENCE = 10.0
"""Seconds for the store to do one thing."""

_PREVIOUS: Path = ("previous_response_id",)
_INSTEAD = "send what came before in input instead"
_NOT_FOUND = "previous_response_not_found"

_T = TypeVar("_T")


class Turn:
    """Made by `begin`, for one request in hub form."""

    def __init__(self, store: ResponseStore | None, owner: str, request: JsonObject, keeps: bool, clock: Clock) -> None:
        self.keeps = keeps and store is not None and request.get("store") is not False
        self._store = store
        self._owner = owner
        self._request = request
        self._clock = clock
        self._id = new_response_id()
        self._previous_id: str | None = request.get("previous_response_id")
        self._before: list[StoredResponse] = []
        self._referred: dict[str, tuple[JsonObject, StoredResponse]] = {}
        self._provider = ""
        self._relies_on_provider = False
        self._forgetful = False
        self._broken = False

    @classmethod
    async def begin(
        cls, store: ResponseStore | None, owner: str, request: JsonObject, keeps: bool, clock: Clock
    ) -> Turn:
        """`keeps` is false for clients that have no way to ask for a response again. Raises Fault."""
        _refuse(request)
        turn = cls(store, owner, request, keeps, clock)
        await turn._follow_references()
        if turn._previous_id is not None:
            turn._before = await turn._recall(turn._previous_id)
            check_results(turn._before, turn._new(None))
        return turn

    def continued(self, ctx: Context, provider: str, may_keep: bool) -> Context:
        """The context in which to write the request for a provider: in it, what came before has its place. `may_keep`
        says that the provider speaks Responses, and may keep them."""
        self._provider = provider
        request, last = dict(ctx.request), self._before[-1] if self._before else None
        self._relies_on_provider = last is not None and may_keep and _keeps(last, provider) and not self._forgetful
        if last is not None and self._relies_on_provider:
            request["previous_response_id"] = last.provider_id
        elif last is not None:
            del request["previous_response_id"]
        earlier = [] if self._relies_on_provider else self._before
        holders = [holder for _, holder in self._referred.values()]
        if earlier or (holders and not (may_keep and all(_keeps(holder, provider) for holder in holders))):
            request["input"] = self._whole_input(earlier, provider, ctx)
        return ctx._replace(request=request)

    def forgotten(self, fault: Fault) -> bool:
        """True, once, where the fault says that a provider has lost what it had kept: it needs the whole input."""
        if not self._relies_on_provider or self._forgetful:
            return False
        self._forgetful = _NOT_FOUND in (fault.code, fault.provider_code) or fault.path[:1] == _PREVIOUS
        return self._forgetful

    async def finished(self, response: JsonObject) -> JsonObject:
        """The response as the client gets it, once it is kept. Raises Fault."""
        sealed = self._sealed(response)
        if self.keeps:
            await self._keep(sealed, response["id"] if response.get("store") is True else None)
        return sealed

    async def passed(self, outputs: list[Output]) -> list[Output]:
        """Outputs of a stream as the client gets them, in the same list; with the last event, the response is kept.
        Raises Fault."""
        for i, output in enumerate(outputs):
            if isinstance(output, Chunk) and isinstance(output.body.get("response"), dict):
                outputs[i] = await self._passed(output)
        return outputs

    async def failed(self, writer: StreamWriter, mask: Mask) -> Fault | None:
        """Keep what a broken stream ended with. Returns what went wrong with that: the client is told of a failure
        anyway."""
        if not self.keeps or self._broken or not isinstance(writer, ResponsesStreamWriter) or writer.failed is None:
            return None
        try:
            await self._keep(orjson.loads(mask(orjson.dumps(writer.failed))), None)
        except Fault as fault:
            return fault
        return None

    async def _passed(self, chunk: Chunk) -> Chunk:
        response = chunk.body["response"]
        ended = chunk.body["type"] in TERMINALS
        sealed = await self.finished(response) if ended else self._sealed(response)
        return chunk if sealed is response else Chunk({**chunk.body, "response": sealed})

    def _sealed(self, response: JsonObject) -> JsonObject:
        told: JsonObject = {"store": self.keeps, "previous_response_id": self._previous_id}
        if self.keeps:
            told["id"] = self._id
        elif not response.get("store") and response.get("previous_response_id") == self._previous_id:
            return response
        return {**response, **told}

    async def _recall(self, previous_id: str) -> list[StoredResponse]:
        if self._store is None:
            text = f"the previous response {previous_id[:80]!r} is not known: this proxy keeps no responses; {_INSTEAD}"
            raise Fault("not_found", text, _PREVIOUS, code=_NOT_FOUND)
        try:
            chain = await self._in_time(self._store.chain(self._owner, previous_id, MOST_TURNS))
        except OverLimit as error:
            raise Fault("invalid_request", f"{error}; {_INSTEAD}", _PREVIOUS, code=error.reason) from None
        except StoreError as error:
            raise store_fault("the previous response cannot be read", error) from error
        if chain is None:
            text = f"the previous response {previous_id[:80]!r}, or one before it, is unknown, deleted or too old"
            raise Fault("not_found", f"{text}; {_INSTEAD}", _PREVIOUS, code=_NOT_FOUND)
        return chain

    async def _follow_references(self) -> None:
        """Look up the items that the input names by their ids; those that nobody knows are left to the provider."""
        wanted = [item_id for item in items_of(self._request) if (item_id := reference(item)) is not None]
        if not wanted or self._store is None:
            return
        try:
            holders = await self._in_time(self._store.holders(self._owner, wanted, MOST_TURNS))
        except OverLimit as error:
            raise Fault("invalid_request", str(error), ("input",), code=error.reason) from None
        except StoreError as error:
            raise store_fault("the items that input refers to cannot be read", error) from error
        found = {item.get("id"): (item, holder) for holder in holders for item in holder.response.get("output") or ()}
        self._referred = {item_id: found[item_id] for item_id in wanted if item_id in found}

    def _new(self, provider: str | None) -> list[tuple[int, JsonObject]]:
        """The new items and their positions in the client's input; stored items in place of references to them."""
        found: list[tuple[int, JsonObject | None]] = []
        for i, item in enumerate(items_of(self._request)):
            referred = self._referred.get(reference(item) or "")
            found.append((i, item if referred is None else again(referred[0], referred[1].provider == provider)))
        return [(i, item) for i, item in found if item is not None]

    def _whole_input(self, earlier: list[StoredResponse], provider: str, ctx: Context) -> list[JsonObject]:
        """What came before and what is new; the receipt learns where each item has its place now."""
        before = [item for record in earlier for item in replayed(record, record.provider == provider)]
        for record in earlier:
            output = record.response.get("output") or []
            self._tell_left_out(record, [*record.input, *output], output, provider, _PREVIOUS, ctx)
        for item, record in self._referred.values():
            self._tell_left_out(record, [item], [item], provider, ("input",), ctx)
        new, first = self._new(provider), len(before)
        if self._referred:
            ctx.receipt.record_conversion(("input",), "the items themselves stand in place of references to them")
        if before:
            ctx.receipt.record_conversion(_PREVIOUS, "what came before stands in the input", after=("input",))
        places: list[tuple[Path, Path]] = [(_PREVIOUS, ("input", i)) for i in range(first)]
        if isinstance(self._request.get("input"), str):
            places += [(("input",), ("input", first)), (("input",), ("input", first, "content"))]
        else:
            places += [(("input", i), ("input", first + now)) for now, (i, _) in enumerate(new)]
        ctx.receipt.map_paths(places)
        return [*before, *(item for _, item in new)]

    @staticmethod
    def _tell_left_out(
        record: StoredResponse,
        items: list[JsonObject],
        output: list[JsonObject],
        provider: str,
        path: Path,
        ctx: Context,
    ) -> None:
        """What a provider does not get of a response's items; `output` are those that it had made."""
        if record.provider != provider and any(map(is_sealed, items)):
            ctx.receipt.record_conversion(path, "what another provider has sealed is left out", "loss")
        if any(map(is_cut_off, output)):
            ctx.receipt.record_drop(path, "a call that was cut off is left out")

    async def _keep(self, response: JsonObject, provider_id: str | None) -> None:
        assert self._store is not None
        record = StoredResponse(
            id=self._id,
            previous_id=self._previous_id,
            created_at=float(response["created_at"]),
            model=str(self._request.get("model")),
            input=[item for _, item in self._new(self._provider)],
            response=response,
            provider=self._provider,
            provider_id=provider_id,
        )
        try:
            await self._in_time(self._store.put(self._owner, record))
        except StoreError as error:
            self._broken = True
            raise store_fault("the response cannot be kept (ask with store: false to go without)", error) from error

    async def _in_time(self, doing: Awaitable[_T]) -> _T:
        self._clock.enter("store", PATIENCE)
        try:
            return await doing
        except asyncio.CancelledError as stop:
            raise self._clock.verdict(stop) from None


def store_fault(text: str, error: StoreError) -> Fault:
    """The fault for a store that fails. The error's own text is for the log: it may name files."""
    reason = str(error) if isinstance(error, OverLimit) else error.reason.replace("_", " ")
    return Fault("internal", f"{text}: {reason}", code="store_failed")


def _refuse(request: JsonObject) -> None:
    """What would need state that is not kept here."""
    if request.get("background"):
        text = "background: true cannot be served: leave it out, and wait or ask for a stream"
        raise Fault("unsupported_parameter", text, ("background",), True, code="unsupported_parameter")
    if request.get("conversation") is not None:
        text = "conversation cannot be served: there are no conversations here; use previous_response_id"
        raise Fault("unsupported_parameter", text, ("conversation",), code="unsupported_parameter")


def _keeps(record: StoredResponse, provider: str) -> bool:
    return record.provider == provider and record.provider_id is not None
