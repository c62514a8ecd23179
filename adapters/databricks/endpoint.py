"""The parts that all protocols of a Databricks serving endpoint share: its address, and the default of `stream`."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

from dragoman.adapters.call import Call, Context, JsonObject

from .addresses import names_model_in_body, unified_path
from .invocations import parse_endpoint_name

__all__ = [
    "fill_stream_defaults",
    "invocations_path",
    "make_invocation",
    "remove_model",
    "set_model_from_path",
]


@lru_cache(maxsize=256)
def invocations_path(name: str) -> str:
    """Return the path of the endpoint with that name."""
    return f"/serving-endpoints/{quote(name, safe='')}/invocations"


def remove_model(body: JsonObject, ctx: Context) -> None:
    """Remove the client's name of the model from a request to a provider: the target has its own."""
    if "model" in body:
        del body["model"]
        if not names_model_in_body(ctx.target):
            ctx.receipt.record_move(("model",), (), "the address names the endpoint")


def make_invocation(body: JsonObject, ctx: Context, path: str) -> Call:
    """Return the call of the target's endpoint; `path` is that of the protocol where the address names no model."""
    if names_model_in_body(ctx.target):
        return Call("POST", unified_path(path), {"model": ctx.target.model, **body})
    return Call("POST", invocations_path(ctx.target.model), body)


def set_model_from_path(body: JsonObject, call: Call, ctx: Context) -> None:
    """Set the model of a client's request to the endpoint that its address names, if it names one."""
    if (endpoint := parse_endpoint_name(call.path)) is not None:
        if "model" in body:
            ctx.receipt.record_drop(("model",), "the address names the endpoint", "form")
        body["model"] = endpoint


def fill_stream_defaults(body: JsonObject, ctx: Context) -> None:
    """Fill in what a client's request leaves out about streaming.

    In the `documented` profile `stream` is true by default; streams of this dialect always report usage.
    """
    if body.get("stream") is None and ctx.profile == "documented":
        note = ctx.receipt.record_conversion if "stream" in body else ctx.receipt.record_fill
        note(("stream",), "the documented default")
        body["stream"] = True
    if body.get("stream") and "stream_options" not in body:
        ctx.receipt.record_fill(("stream_options",), "streams of this dialect report usage")
        body["stream_options"] = {"include_usage": True}
