"""The databricks dialect of Responses, called.

The input has only users and assistants, so system and developer messages go into `instructions`. Tools, tool choice and
formats are nested as in chat. Databricks stores no responses and answers 400 to fields about that, so they are not
sent. The documented input has only messages, so function calls and their outputs are blocks in messages.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.messages import extract_text
from dragoman.adapters.common.parameters import clamp_effort, copy_request
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Called
from dragoman.adapters.fit import HUB_RESPONSES, fit
from dragoman.adapters.paths import Path
from dragoman.adapters.responses.reply import read_response
from dragoman.adapters.responses.stream import ResponsesStreamReader
from dragoman.adapters.validation import load_validator

from .encrypted_reasoning import move_reasoning_out_of_input
from .faults import WORDS
from .function_blocks import pack_input_messages
from .hub_forms import convert_to_hub_forms
from .shapes import nest_choice, nest_format, nest_tool

__all__ = ["CALLED"]

REPLY_RULES = ReplyRules("databricks", words=WORDS, to_hub_forms=convert_to_hub_forms)

_LONGEST_ID = 64
_HANDLED_BY_DRAGOMAN = ("store", "previous_response_id")
_INSTRUCTING = ("system", "developer")


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = copy_request(request, ctx, HUB_RESPONSES)
    body["model"] = ctx.target.model
    for name in _HANDLED_BY_DRAGOMAN:
        if body.pop(name, None) is not None:
            ctx.receipt.record_drop((name,), "dragoman keeps responses itself", "form")
    _write_input(body, ctx)
    if ctx.profile == "documented":
        move_reasoning_out_of_input(body, ctx)
        if isinstance(body.get("input"), list):
            body["input"] = pack_input_messages(body["input"], ctx)
    _nest_settings(body, ctx)
    rules = load_validator("databricks/responses.request", ctx.profile)
    clamp_effort(body, rules, ctx, ("reasoning", "effort"), HUB_RESPONSES)
    if body.get("stream"):
        ctx.receipt.record_fill(("stream_options",), "so that the stream reports usage")
        body["stream_options"] = {"include_usage": True}
    fit(body, rules, ctx, "drop", HUB_RESPONSES)
    name = quote(ctx.target.model, safe="")
    documented = f"/serving-endpoints/{name}/invocations"
    return Call("POST", documented if ctx.profile == "documented" else "/serving-endpoints/responses", body)


def _write_input(body: JsonObject, ctx: Context) -> None:
    items = body.get("input")
    if not isinstance(items, list):
        return
    instructing = [i for i, item in enumerate(items) if item.get("role") in _INSTRUCTING]
    texts = [body["instructions"]] if body.get("instructions") else []
    for i in instructing:
        texts.append(extract_text(items[i].get("content")))
        ctx.receipt.record_conversion(("input", i), "the input has only users and assistants", after=("instructions",))
    if texts:
        body["instructions"] = "\n\n".join(texts)
    kept = [i for i, item in enumerate(items) if item.get("role") not in _INSTRUCTING]
    ctx.receipt.map_paths([(("input", i), ("input", new)) for new, i in enumerate(kept)])
    body["input"] = [_drop_long_id(items[i], ("input", new), ctx) for new, i in enumerate(kept)]


def _drop_long_id(item: JsonObject, path: Path, ctx: Context) -> JsonObject:
    item_id = item.get("id")
    if isinstance(item_id, str) and len(item_id) > _LONGEST_ID:
        ctx.receipt.record_drop((*path, "id"), f"the service refuses ids of more than {_LONGEST_ID} characters", "form")
        return {key: value for key, value in item.items() if key != "id"}
    return item


def _nest_settings(body: JsonObject, ctx: Context) -> None:
    if body.get("tools"):
        body["tools"] = [nest_tool(tool) for tool in body["tools"]]
        ctx.receipt.record_conversion(("tools",), "nested as in chat")
        places = [
            (("tools", i), ("tools", i, "function")) for i, tool in enumerate(body["tools"]) if "function" in tool
        ]
        ctx.receipt.map_paths(places)
    if isinstance(body.get("tool_choice"), dict):
        body["tool_choice"] = nest_choice(body["tool_choice"])
        ctx.receipt.record_conversion(("tool_choice",), "nested as in chat")
        ctx.receipt.map_paths([(("tool_choice",), ("tool_choice", "function"))])
    text: Any = body.get("text")
    if isinstance(text, dict) and isinstance(text.get("format"), dict):
        body["text"] = {**text, "format": nest_format(text["format"])}
        ctx.receipt.record_conversion(("text", "format"), "nested as in chat")
        ctx.receipt.map_paths([(("text", "format"), ("text", "format", "json_schema"))])


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_response(reply, REPLY_RULES, ctx)


def read_stream(ctx: Context) -> ResponsesStreamReader:
    return ResponsesStreamReader(REPLY_RULES, ctx)


CALLED = Called(write_request, read_reply, read_stream, REPLY_RULES.read_fault)
