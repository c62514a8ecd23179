"""What a bridge is: the translation between a client that speaks one protocol and a provider that speaks another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.emulation.interface import Emulation
from dragoman.adapters.streams import StreamTranslator

__all__ = ["Bridge", "RequestTranslation", "translate_with"]

RequestTranslation: TypeAlias = Callable[[Context], Context]
"""Returns the context with its request translated. May raise Fault."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """The translation to one other protocol, all in hub form.

    `called` is the protocol that the provider speaks. `request` translates the request of a call, `reply` a whole
    reply, and `stream` makes a translator of streams; the last two also get the client's request. All get the context
    of the call, and may raise Fault. `batching` is set if one request may need several calls: it splits the client's
    request, and joins replies in the client's protocol. `needs_first_choice`: the client's protocol has only one
    choice. `full_request` is what another bridge after this one gets instead of `request`: it may hold more than
    providers accept.
    """

    called: str
    request: RequestTranslation
    reply: Callable[[JsonObject, JsonObject, Context], JsonObject]
    stream: Callable[[JsonObject, Context], StreamTranslator]
    batching: Emulation | None = None
    needs_first_choice: bool = False
    full_request: RequestTranslation | None = None


def translate_with(translate: Callable[[JsonObject, Context], JsonObject]) -> RequestTranslation:
    """The translation of a context, from that of a request."""
    return lambda ctx: ctx.with_request(translate(ctx.request, ctx))
