"""What a dialect is: a name, its profiles, and eight verbs for each protocol that it has.

*Read* goes from the dialect to the hub form, *write* from the hub form to the dialect. A dialect that is **served**
reads requests and writes replies; one that is **called** writes requests and reads replies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .call import Call, Context, JsonObject, Reply
from .faults import Fault
from .listing import Information
from .streams import StreamReader, StreamWriter

__all__ = ["Batching", "Called", "Dialect", "Served"]


@dataclass(frozen=True, slots=True)
class Served:
    """The verbs toward a client. All raise Fault."""

    read_request: Callable[[Call, Context], JsonObject]
    write_reply: Callable[[JsonObject, Context], Reply]
    write_stream: Callable[[Context], StreamWriter]
    write_fault: Callable[[Fault, Context], Reply]


@dataclass(frozen=True, slots=True)
class Batching:
    """How a request that is too large for one call becomes several. `split` gives one context for each, the request in
    hub form and the receipt being those of the part: only the context itself where one call will do. `join` makes one
    reply in hub form of the parts' replies, which come in the order of the parts. Both raise Fault."""

    split: Callable[[Context], list[Context]]
    join: Callable[[list[JsonObject], Context], JsonObject]


@dataclass(frozen=True, slots=True)
class Called:
    """The verbs toward a provider. `write_request` never alters the request that it is given. All but `read_fault`
    and `read_stream` raise Fault; `read_fault` understands any bytes. `batching` is there where one request may take
    several calls."""

    write_request: Callable[[JsonObject, Context], Call]
    read_reply: Callable[[Reply, Context], JsonObject]
    read_stream: Callable[[Context], StreamReader]
    read_fault: Callable[[Reply, Context], Fault]
    batching: Batching | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """A vendor's variant of the protocols.

    `auth` names the ways to present a key, the first being the default: header name -> template. `addresses` are the
    forms of address that its providers may have beside the usual one, each with its own default of `auth`.
    `forwarded` are the provider's response headers that its clients rely on. `deployment_header` is the request header
    with which its clients pick one of a model's targets. `summarised_reasoning` is true where what a reply tells of the
    model's reasoning is a summary of it. `keeps_responses` is true where providers may keep responses, and continue
    them. `protocol_of` tells what a call to an address of several protocols asks for, given a look at the tasks that
    are configured for models. `information` is what it answers at addresses that tell of models.
    """

    name: str
    profiles: tuple[str, ...]
    auth: Mapping[str, Mapping[str, str]]
    served: Mapping[str, Served] = field(default_factory=dict)
    called: Mapping[str, Called] = field(default_factory=dict)
    forwarded: tuple[str, ...] = ()
    deployment_header: str | None = None
    summarised_reasoning: bool = False
    keeps_responses: bool = False
    protocol_of: Callable[[Call, Callable[[str], str | None]], str] | None = None
    information: Mapping[str, Information] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)

    def presented(self, address: str | None, *, token: bool) -> str:
        """The word of `auth` where the configuration has none: a token is always a bearer's."""
        if token:
            return "bearer"
        return next(iter(self.auth)) if address is None else self.addresses[address]
