"""What every protocol of a Databricks serving endpoint has in common: its address, and whether it streams unasked."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

from dragoman.adapters.call import Call, Context, JsonObject

from .invocations import parse_endpoint_name

__all__ = [
    "fill_stream_defaults",
    "fill_stream_flag",
    "invocations",
    "make_invocation",
    "remove_model",
    "set_model_from_path",
]


@lru_cache(maxsize=256)
def invocations(name: str) -> str:
    """The path of the endpoint with that name."""
    return f"/serving-endpoints/{quote(name, safe='')}/invocations"


def remove_model(body: JsonObject, ctx: Context) -> None:
    """Toward a provider the address names the model."""
    if "model" in body:
        del body["model"]
        ctx.receipt.record_move(("model",), (), "the endpoint's name stands in the address")


def make_invocation(body: JsonObject, ctx: Context) -> Call:
    """The call of a body that names no model."""
    return Call("POST", invocations(ctx.target.model), body)


def fill_stream_flag(body: JsonObject, ctx: Context) -> None:
    """Toward a provider it is always said whether to stream."""
    if body.get("stream") is None:
        note = ctx.receipt.record_conversion if "stream" in body else ctx.receipt.record_fill
        note(("stream",), "the documented default differs from OpenAI's")
        body["stream"] = False


def set_model_from_path(body: JsonObject, call: Call, ctx: Context) -> None:
    """The model of a client's request is the endpoint that its address names, where it names one."""
    if (endpoint := parse_endpoint_name(call.path)) is not None:
        if "model" in body:
            ctx.receipt.record_drop(("model",), "the address names the endpoint", "form")
        body["model"] = endpoint


def fill_stream_defaults(body: JsonObject, ctx: Context) -> None:
    """What a client's request leaves out about streaming: the documented default, and that streams tell the usage."""
    if body.get("stream") is None and ctx.profile == "documented":
        note = ctx.receipt.record_conversion if "stream" in body else ctx.receipt.record_fill
        note(("stream",), "the documented default")
        body["stream"] = True
    if body.get("stream") and "stream_options" not in body:
        ctx.receipt.record_fill(("stream_options",), "streams of this dialect report usage")
        body["stream_options"] = {"include_usage": True}
