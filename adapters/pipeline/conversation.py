"""One response in a conversation over Responses: what the request continues, and what is kept of the answer.

Before. A request may continue a response by its `previous_response_id`, and refer to items of earlier responses. The
provider that made those responses gets its own ids if it keeps them too. Every other provider gets the items
themselves: the input becomes input, output, input, output, ..., and then the new items. Instructions are not carried
over. Encrypted reasoning goes back to the provider that made it and to no other.

After. The client sees one id, which is ours, and a `store` that is true exactly if the response can be retrieved. A
response is saved before its last event, or its whole reply, goes out: a client that has read it to the end can rely on
it. A response that failed after it had begun is saved too.

Nothing here reads or writes a store: `recall` says what to fetch, `supply` takes it, and `create_record` gives the
record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault, Kind, join_faults
from dragoman.adapters.paths import Path
from dragoman.adapters.responses.history import (
    check_results,
    find_repeated_items,
    has_encrypted_content,
    is_cut_off,
    list_items,
    referenced_item_id,
    replay_response,
    to_input_item,
)
from dragoman.adapters.responses.stored import ITEM_PREFIXES, StoredResponse, new_item_id, new_response_id
from dragoman.adapters.streams import Chunk, Output

__all__ = ["CONVERSATIONS", "INSTEAD", "PREVIOUS", "Conversation", "Recall", "find_provider_id"]

CONVERSATIONS = frozenset({"responses"})
"""The protocols whose requests may continue earlier ones."""

PREVIOUS: Path = ("previous_response_id",)
INSTEAD = "send what came before in input instead"
_NOT_FOUND = "previous_response_not_found"


class Recall(NamedTuple):
    """What to fetch from the store: the chain that ends with `previous_id`, and the responses that hold the items with
    these ids."""

    previous_id: str | None
    item_ids: tuple[str, ...]


class Conversation:
    """Made for one request in canonical form. `keeps` says that the response is saved."""

    def __init__(self, request: JsonObject, *, has_store: bool, can_retrieve: bool) -> None:
        """`can_retrieve`: the client has a way to ask for the response again. Raises Fault for what needs state that
        dragoman does not have."""
        _refuse_unsupported_state(request)
        self.keeps = can_retrieve and has_store and request.get("store") is not False
        self._has_store = has_store
        self._request = request
        self._id = new_response_id() if self.keeps else ""
        self._previous_id = _read_previous_id(request)
        self._before: list[StoredResponse] = []
        self._referred: dict[str, tuple[JsonObject, StoredResponse]] = {}
        self._repeated: frozenset[int] = frozenset()  # positions of items that the conversation has already
        self._provider = ""
        self._shown: tuple[JsonObject, JsonObject] = ({}, {})  # of the latest event, and for the client
        self._recorded: tuple[Receipt | None, list[str]] = (None, [])  # the keys that were replaced last
        self._items = 0  # items that got an id
        self._relies_on_provider = False
        self._has_forgotten = False

    @property
    def is_stateful(self) -> bool:
        """Whether the response is saved, or continues earlier ones."""
        return self.keeps or self._previous_id is not None or bool(self._referred)

    def recall(self) -> Recall | None:
        """What the request needs from the store; None if it needs nothing. Raises Fault if there is no store."""
        if not self._has_store:
            if self._previous_id is None:
                return None
            text = f"the previous response {self._previous_id[:80]!r} is not known: this proxy stores no responses"
            raise Fault("not_found", f"{text}; {INSTEAD}", PREVIOUS, code=_NOT_FOUND)
        others = [item for item in list_items(self._request) if "role" not in item]
        wanted = tuple(item_id for item in others if (item_id := referenced_item_id(item)) is not None)
        return Recall(self._previous_id, wanted) if wanted or self._previous_id is not None else None

    def supply(self, chain: Sequence[StoredResponse] | None, holders: Sequence[StoredResponse]) -> None:
        """Take what was recalled: the chain, oldest first, None if a link is missing; and the responses that hold the
        items. An item that no response holds is left to the provider. Raises Fault."""
        if holders:
            held = {
                item.get("id"): (item, holder) for holder in holders for item in holder.response.get("output") or ()
            }
            wanted = filter(None, map(referenced_item_id, list_items(self._request)))
            self._referred = {item_id: held[item_id] for item_id in wanted if item_id in held}
        if self._previous_id is None:
            return
        if chain is None:
            text = f"the previous response {self._previous_id[:80]!r}, or one before it, is unknown, deleted or too old"
            raise Fault("not_found", f"{text}; {INSTEAD}", PREVIOUS, code=_NOT_FOUND)
        self._before = [*chain]
        self._repeated = find_repeated_items(self._before, self._new_items(None))
        check_results(self._before, self._new_items(None))

    def continue_for(self, ctx: Context, provider: str, may_keep: bool) -> Context:
        """The context in which to write the request for a provider, with what came before in its place. Items of a
        response that is saved get ids that name it. `may_keep` says that the provider speaks Responses and may keep
        them."""
        self._provider = provider
        new_id = self._with_item_ids(ctx.new_id) if self.keeps else ctx.new_id
        if not self._before and not self._referred:
            return ctx._replace(new_id=new_id)
        request, last = dict(ctx.request), self._before[-1] if self._before else None
        self._relies_on_provider = last is not None and may_keep and _is_kept_by(last, provider)
        self._relies_on_provider &= not self._has_forgotten
        if last is not None and self._relies_on_provider:
            request["previous_response_id"] = last.provider_id
        elif last is not None:
            del request["previous_response_id"]
        earlier = [] if self._relies_on_provider else self._before
        holders = [holder for _, holder in self._referred.values()]
        if earlier or (holders and not (may_keep and all(_is_kept_by(holder, provider) for holder in holders))):
            request["input"] = self._build_input(earlier, provider, ctx)
        return ctx._replace(request=request, new_id=new_id)

    def forget_provider_id(self, fault: Fault) -> bool:
        """True, once, if the fault says that the provider has lost the response it had kept. From then on it gets the
        whole input."""
        if not self._relies_on_provider or self._has_forgotten:
            return False
        self._has_forgotten = _NOT_FOUND in (fault.code, fault.provider_code) or fault.path[:1] == PREVIOUS
        return self._has_forgotten

    def with_store_fields(self, response: JsonObject, receipt: Receipt) -> JsonObject:
        """The response with our id, the client's `previous_response_id`, and a `store` that is true if it is kept."""
        fields: JsonObject = {"store": self.keeps, "previous_response_id": self._previous_id}
        if self.keeps:
            fields["id"] = self._id
        elif not response.get("store") and response.get("previous_response_id") == self._previous_id:
            return response
        replaced = [key for key, value in fields.items() if response.get(key) != value]
        if (receipt, replaced) != self._recorded:
            self._recorded = receipt, replaced
            for key in replaced:
                receipt.record_conversion((key,), "it is about the response that dragoman keeps, or does not keep")
        return {**response, **fields}

    def replace_fields(self, output: Output, receipt: Receipt) -> Output:
        """An output of a stream as the client gets it."""
        if not isinstance(output, Chunk) or not isinstance(output.body.get("response"), dict):
            return output
        response = output.body["response"]
        given, shown = self._shown
        if response is not given:  # the first events of a stream have the same object
            shown = self.with_store_fields(response, receipt)
            self._shown = response, shown
        return output if shown is response else Chunk({**output.body, "response": shown})

    def create_record(
        self, response: JsonObject, provider_id: str | None = None, written: bytes | None = None
    ) -> StoredResponse:
        """The record of a response as the client gets it; `written` is its JSON text, if that is known."""
        return StoredResponse(
            id=self._id,
            previous_id=self._previous_id,
            created_at=float(response["created_at"]),
            model=str(self._request.get("model")),
            input=self._list_new_input(),
            response=response,
            provider=self._provider,
            provider_id=provider_id,
            written=written,
        )

    def _with_item_ids(self, new_id: Callable[[str], str]) -> Callable[[str], str]:
        def create(prefix: str) -> str:
            if prefix not in ITEM_PREFIXES:
                return new_id(prefix)
            self._items += 1
            return new_item_id(self._id, prefix, self._items - 1)

        return create

    def _list_new_input(self) -> list[JsonObject]:
        if not self._referred and not self._repeated:
            return list_items(self._request)
        return [item for _, item in self._new_items(self._provider)]

    def _new_items(self, provider: str | None) -> list[tuple[int, JsonObject]]:
        """The new items with their positions in the client's input; references are replaced by the stored items."""
        if not self._referred and not self._repeated:
            return [*enumerate(list_items(self._request))]
        found: list[tuple[int, JsonObject | None]] = []
        for i, item in enumerate(list_items(self._request)):
            referred = self._referred.get(referenced_item_id(item) or "")
            found.append(
                (i, item if referred is None else to_input_item(referred[0], referred[1].provider == provider))
            )
        return [(i, item) for i, item in found if item is not None and i not in self._repeated]

    def _build_input(self, earlier: list[StoredResponse], provider: str, ctx: Context) -> list[JsonObject]:
        """What came before, then what is new. The receipt learns where each item is now."""
        before = [item for record in earlier for item in replay_response(record, record.provider == provider)]
        for record in earlier:
            output = record.response.get("output") or []
            _record_omissions(record, [*record.input, *output], output, provider, PREVIOUS, ctx)
        for item, record in self._referred.values():
            _record_omissions(record, [item], [item], provider, ("input",), ctx)
        new, first = self._new_items(provider), len(before)
        for i in sorted(self._repeated):
            ctx.receipt.record_drop(("input", i), "the conversation has this item already", "form")
        if self._referred:
            ctx.receipt.record_conversion(("input",), "references to items are replaced by the items")
        if before:
            ctx.receipt.record_conversion(PREVIOUS, "what came before is sent in the input", after=("input",))
        places: list[tuple[Path, Path]] = [(PREVIOUS, ("input", i)) for i in range(first)]
        if isinstance(self._request.get("input"), str):
            places += [(("input",), ("input", first)), (("input",), ("input", first, "content"))]
        else:
            places += [(("input", i), ("input", first + now)) for now, (i, _) in enumerate(new)]
        ctx.receipt.map_paths(places)
        return [*before, *(item for _, item in new)]


def _record_omissions(
    record: StoredResponse, items: list[JsonObject], output: list[JsonObject], provider: str, path: Path, ctx: Context
) -> None:
    """Record what a provider does not get of a response's items; `output` are those that the response added."""
    if record.provider != provider and any(map(has_encrypted_content, items)):
        ctx.receipt.record_conversion(path, "content that another provider encrypted is left out", "loss")
    if any(map(is_cut_off, output)):
        ctx.receipt.record_drop(path, "a call that was cut off is left out")


def find_provider_id(response: JsonObject) -> str | None:
    """The id of a provider's response, if the provider stores it."""
    return response["id"] if response.get("store") is True else None


def _read_previous_id(request: JsonObject) -> str | None:
    """The id of the response to continue. Raises Fault for another value, which a profile without the field lets
    pass."""
    given = request.get("previous_response_id")
    if given is not None and not isinstance(given, str):
        raise Fault("invalid_request", "previous_response_id must be a string", PREVIOUS, given, code="invalid_type")
    return given


def _refuse_unsupported_state(request: JsonObject) -> None:
    """Raise Fault for what would need state that dragoman does not keep."""
    kind: Kind = "unsupported_parameter"
    found: list[Fault] = []
    if request.get("background"):
        text = "background: true cannot be served: leave it out, and wait or ask for a stream"
        found.append(Fault(kind, text, ("background",), True, code=kind))
    if request.get("conversation") is not None:
        text = "conversation cannot be served: there are no conversations here; use previous_response_id"
        found.append(Fault(kind, text, ("conversation",), code=kind))
    if found:
        raise join_faults(found)


def _is_kept_by(record: StoredResponse, provider: str) -> bool:
    return record.provider == provider and record.provider_id is not None
