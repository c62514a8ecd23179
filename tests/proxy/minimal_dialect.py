"""A dialect that does as little as possible: OpenAI's shapes, without any validation."""

from __future__ import annotations

import json
from typing import Any

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.completeness import Completeness
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.stream_reader import StreamReaderBase
from dragoman.adapters.common.stream_writer import StreamWriterBase
from dragoman.adapters.dialect import Called, Dialect, Served, prefix
from dragoman.adapters.error_replies import make_reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.rate_headers import OPENAI_RATE_HEADERS
from dragoman.adapters.streams import Chunk, Output

__all__ = ["make_dialect"]


def _read_request(call: Call, ctx: Context) -> JsonObject:
    if call.body.get("broken"):
        raise RuntimeError("sk-canary-of-a-defect")
    if "messages" not in call.body:
        raise Fault("invalid_request", "messages is missing", ("messages",), code="missing_required_parameter")
    return call.body


def _write_fault(fault: Fault, ctx: Context) -> Reply:
    error = {"message": fault.message, "type": fault.kind, "param": fault.param, "code": fault.code}
    return make_reply(fault.status, {"error": error}, fault)


class _Writer(StreamWriterBase):
    def __init__(self, aborts: bool) -> None:
        super().__init__()
        self._aborts_on_fault = aborts

    def _encode_chunk(self, chunk: Chunk) -> bytes:
        return b"data: " + (chunk.raw or json.dumps(chunk.body).encode()) + b"\n\n"

    def _encode_end(self) -> bytes:
        return b"data: [DONE]\n\n"

    def _encode_fault(self, fault: Fault) -> bytes:
        self.aborts = self._aborts_on_fault
        return b"data: " + json.dumps(_write_fault(fault, None).body).encode() + b"\n\n"  # type: ignore[arg-type]


def _write_request(request: JsonObject, ctx: Context) -> Call:
    body = {**request, "model": ctx.target.model}
    for name in ctx.target.lacks & body.keys():
        raise Fault("unsupported_parameter", f"{name} is not supported", (name,), code="unsupported_parameter")
    if ctx.target.policy.extra_parameters == "drop" and body.pop("extra", None):
        ctx.receipt.record_drop(("extra",), "the target does not know it")
    return Call("POST", "/chat/completions", body)


def _read_reply(reply: Reply, ctx: Context) -> JsonObject:
    if "choices" not in reply.body:
        raise Fault("upstream_error", str(reply.body.get("error")), status=502, code="in_band")
    return reply.body


def _read_fault(reply: Reply, ctx: Context) -> Fault:
    kinds = {401: "upstream_auth_failed", 408: "upstream_timeout", 422: "unprocessable", 429: "rate_limit"}
    kind = kinds.get(reply.status, "upstream_error" if reply.status >= 500 else "invalid_request")
    status = 502 if kind == "upstream_auth_failed" else reply.status
    after = reply.headers.get("Retry-After")
    message = reply.raw.decode("utf-8", "replace")[:200]
    return Fault(kind, message, status=status, retry_after=float(after) if after else None)  # type: ignore[arg-type]


class _Completeness(Completeness):
    is_complete = False
    missing = "it finished"


class _Reader(StreamReaderBase):
    wrong_event = "an event that is not JSON"
    _completeness: _Completeness

    def __init__(self, ctx: Context) -> None:
        super().__init__(ReplyRules("openai"), ctx, "openai/chat.event", _Completeness())

    def _process_body(self, body: Any, raw: bytes | None, data: bytes, name: bytes | None) -> list[Output]:
        if data == b"[DONE]":
            return self._conclude()
        if not isinstance(body, dict):
            return self._handle_broken(data, None)
        if "defect" in body:
            raise RuntimeError("canary")
        if "error" in body:
            return self._fail(Fault("rate_limit", str(body["error"]), code="in_band"))
        if any(choice.get("finish_reason") for choice in body.get("choices", ())):
            self._completeness.is_complete = True
        return [Chunk(body, data)]


def make_dialect(name: str = "openai", aborts: bool = False) -> Dialect:
    served = Served(_read_request, lambda reply, _: Reply(200, reply), lambda _: _Writer(aborts), _write_fault)
    called = Called(_write_request, _read_reply, _Reader, _read_fault)
    auth = {"bearer": {"Authorization": "Bearer {}"}, "api-key": {"api-key": "{}"}}
    return Dialect(
        name,
        auth,
        served={"chat": served},
        called={"chat": called},
        paths={"chat": prefix(name, "/v1/chat/completions")},
        forwarded=("x-ratelimit-left",),
        rate_headers=OPENAI_RATE_HEADERS,
    )
