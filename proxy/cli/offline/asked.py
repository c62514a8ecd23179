"""A client's request without a client: read as the proxy reads it, and written for a target as the proxy writes it."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.routes import Route
from dragoman.proxy.exchange.attempts import written
from dragoman.proxy.routing.state import Candidate

__all__ = ["Question", "Written", "ask", "refusal", "write"]


@dataclass(frozen=True, slots=True)
class Question:
    """A request in hub form, and the client's call that it was read from."""

    route: Route
    call: Call
    hub: JsonObject
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Written:
    """The call to a target, and everything that was changed on the way to it; the first of `calls`, where the request
    becomes several."""

    call: Call
    receipt: Receipt
    calls: int = 1


def ask(route: Route, call: Call) -> Question:
    """Raises Fault."""
    receipt = Receipt()
    hub = route.served.read_request(call, Context(route.profile, call, receipt))
    return Question(route, call, hub, receipt)


def write(question: Question, candidate: Candidate) -> Written:
    """Raises Fault, its path as the client wrote it."""
    route = question.route
    ctx = Context(route.profile, question.call, question.receipt, request=question.hub)
    attempt = written(ctx, route.protocol, candidate)
    first = attempt.parts[0] if attempt.parts else attempt
    return Written(first.call, first.ctx.receipt, len(attempt.parts) or 1)


def refusal(route: Route, fault: Fault, call: Call | None = None) -> Reply:
    """What the client gets for a fault."""
    call = call or Call("POST", "", {})
    return route.served.write_fault(fault, Context(route.profile, call, Receipt()))
