"""Makes the verbs toward clients of Messages from data. All such clients get Anthropic's replies and errors."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.dialect import Served
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator

from .faults import THREADS, error_body, write_fault
from .headers import read_betas, read_version
from .requests import check_request
from .token_counts import refuse_stream
from .versions import check_version
from .writer import MessagesStreamWriter

__all__ = ["messages_served"]

_PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def messages_served(dialect: str, *, default_version: str | None = None) -> Mapping[str, Served]:
    """The verbs toward clients of Messages, and toward those that have the tokens of a request counted.

    `default_version` is the version of a client that names none, if the service does not require the header.
    """

    def create_reader(protocol: str) -> Served:
        def read_request(call: Call, ctx: Context) -> JsonObject:
            version = read_version(call, default_version)
            validator = load_validator(f"{dialect}/{protocol}.request", ctx.profile)
            _refuse_threads(call.body)
            check_request(call.body, validator, read_betas(call))
            check_version(call.body, version, validator)
            return call.body

        streams = _write_stream if protocol == "messages" else refuse_stream
        return Served(read_request, _write_reply, streams, write_fault)

    return {protocol: create_reader(protocol) for protocol in ("messages", "count_tokens")}


def _refuse_threads(body: JsonObject) -> None:
    """Refuse to keep a conversation: the next turn may go to another provider. Raises Fault."""
    if body.get("thread") is not None:
        text = "message threads are not kept here: send the whole conversation, without thread"
        raise Fault("unsupported_parameter", text, ("thread",), code=THREADS)


def _write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


def _write_stream(ctx: Context) -> MessagesStreamWriter:
    return MessagesStreamWriter(lambda fault: error_body(fault, ctx), ping=_PING)
