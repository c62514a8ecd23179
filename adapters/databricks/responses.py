"""The databricks dialect of Responses.

In the `actual` profile it is OpenAI's Responses API: Databricks passes requests for OpenAI's models on to OpenAI, with
all parameters and tools, and returns the responses as they are. Only addresses and error bodies are Databricks' own.
The `documented` profile is the Foundation Model API reference, which describes an API of another shape.

Source: Databricks, Query with the OpenAI Responses API.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.parameters import copy_request, raise_token_limit
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Called, Served
from dragoman.adapters.fit import fit
from dragoman.adapters.paths import Path
from dragoman.adapters.request_properties import HUB_RESPONSES
from dragoman.adapters.responses.call_ids import shorten_call_ids
from dragoman.adapters.responses.foreign_reasoning import drop_foreign_calls, drop_foreign_reasoning
from dragoman.adapters.responses.reply import read_response
from dragoman.adapters.responses.requests import check_request
from dragoman.adapters.responses.stream import ResponsesStreamReader
from dragoman.adapters.responses.writer import ResponsesStreamWriter
from dragoman.adapters.validation import load_validator

from . import documented_responses, documented_responses_served
from .addresses import responses_path
from .endpoint import set_model_from_path
from .faults import WORDS, error_event, write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("databricks", words=WORDS)

_LONGEST_ID = 64


def read_request(call: Call, ctx: Context) -> JsonObject:
    if ctx.profile == "documented":
        return documented_responses_served.read_request(call, ctx)
    body = dict(call.body)
    set_model_from_path(body, call, ctx)
    check_request(body, load_validator("databricks/responses.request", ctx.profile))
    return body


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    if ctx.profile == "documented":
        return documented_responses_served.write_reply(reply, ctx)
    return Reply(200, reply)


def write_stream(ctx: Context) -> ResponsesStreamWriter:
    if ctx.profile == "documented":
        return documented_responses_served.write_stream(ctx)
    return ResponsesStreamWriter(error_event)


def write_request(request: JsonObject, ctx: Context) -> Call:
    if ctx.profile == "documented":
        return documented_responses.write_request(request, ctx)
    body = copy_request(request, ctx, HUB_RESPONSES)
    body["model"] = ctx.target.model
    drop_foreign_reasoning(body, ctx)
    drop_foreign_calls(body, ctx)
    shorten_call_ids(body, ctx)
    if isinstance(body.get("input"), list):
        body["input"] = [_drop_long_id(item, ("input", i), ctx) for i, item in enumerate(body["input"])]
    rules = load_validator("databricks/responses.request", ctx.profile)
    raise_token_limit(body, rules, ctx)
    fit(body, rules, ctx, "drop", HUB_RESPONSES)
    return Call("POST", responses_path(ctx.target), body)


def _drop_long_id(item: JsonObject, path: Path, ctx: Context) -> JsonObject:
    item_id = item.get("id")
    if isinstance(item_id, str) and len(item_id) > _LONGEST_ID:
        ctx.receipt.record_drop((*path, "id"), f"the service refuses ids of more than {_LONGEST_ID} characters", "form")
        return {key: value for key, value in item.items() if key != "id"}
    return item


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_response(reply, _rules(ctx), ctx)


def read_stream(ctx: Context) -> ResponsesStreamReader:
    return ResponsesStreamReader(_rules(ctx), ctx)


def _rules(ctx: Context) -> ReplyRules:
    return documented_responses.REPLY_RULES if ctx.profile == "documented" else REPLY_RULES


SERVED = Served(read_request, write_reply, write_stream, write_fault)
CALLED = Called(write_request, read_reply, read_stream, REPLY_RULES.read_fault)
