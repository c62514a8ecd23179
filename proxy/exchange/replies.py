"""Replies that come whole: from an upstream's bytes to hub form, and the headers of what the client gets."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.changes import HEADER
from dragoman.adapters.faults import Fault
from dragoman.adapters.jsontext import read_any
from dragoman.proxy.upstreams.interface import Incoming

from .attempts import Asked, Attempt
from .unexpected import Unforeseen

__all__ = ["SSE", "answer_headers", "read_reply", "served_context"]

SSE = "text/event-stream"


async def read_reply(asked: Asked, attempt: Attempt, incoming: Incoming) -> JsonObject:
    """Raises Fault, also where the reply says what went wrong."""
    if incoming.status < 400 and not asked.note.stream and incoming.media_type == SSE:
        raise _invalid(attempt, "it sent a stream, which was not asked for", "upstream_unexpected_stream")
    raw = await incoming.read()
    with Unforeseen(asked, attempt):
        hub = _hub_reply(asked, attempt, incoming, raw)
    asked.note.usage = hub.get("usage")
    return hub


def _hub_reply(asked: Asked, attempt: Attempt, incoming: Incoming, raw: bytes) -> JsonObject:
    body = _object(raw)
    reply = Reply(incoming.status, body or {}, incoming.headers, raw)
    try:
        if incoming.status >= 400:
            raise attempt.called.read_fault(reply, attempt.ctx)
        if body is None:
            code = "upstream_invalid_json" if incoming.whole else "upstream_truncated"
            raise _invalid(attempt, "its reply is not a JSON object", code)
        hub = attempt.called.read_reply(reply, attempt.ctx)
        if attempt.bridge is not None:
            hub = attempt.bridge.reply(hub, asked.ctx.request, attempt.ctx)
        return hub
    except Fault as fault:
        raise fault.locate(attempt.ctx.receipt) from None


def served_context(asked: Asked, attempt: Attempt) -> Context:
    """What the client's dialect may look at when it writes this target's answer."""
    ctx = asked.ctx
    return Context(ctx.profile, ctx.call, attempt.ctx.receipt, attempt.ctx.target, ctx.request)


def answer_headers(asked: Asked, attempt: Attempt | None, incoming: Incoming | None) -> dict[str, str]:
    """The id, what was lost on the way, and what the provider's own clients rely on."""
    headers = {"x-request-id": asked.note.request_id}
    if attempt is not None and (changes := attempt.ctx.receipt.header()) is not None:
        headers[HEADER] = changes
    if attempt is not None and incoming is not None:
        for name in attempt.candidate.provider.dialect.forwarded:
            if name in incoming.headers:
                headers[name] = incoming.headers[name]
    return headers


def _object(raw: bytes) -> JsonObject | None:
    try:
        body = read_any(raw)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _invalid(attempt: Attempt, text: str, code: str) -> Fault:
    return Fault("upstream_invalid_response", f"upstream {attempt.candidate.provider.name}: {text}", code=code)
