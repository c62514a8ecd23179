"""The databricks dialect of Responses, called.

Only users and assistants speak in the input: what instructs goes into `instructions`. Tools, the choice among them and
formats are nested as in chat. Databricks keeps nothing and answers 400 to what would ask it to: such fields stay here.
The documented input has messages only, so there calls and their outputs are blocks of messages.
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

from .blocks import input_messages
from .faults import WORDS
from .hub_forms import in_hub_forms
from .sealed import beside_the_input
from .shapes import nested_choice, nested_format, nested_tool

__all__ = ["CALLED"]

REPLY_RULES = ReplyRules("databricks", words=WORDS, to_hub_forms=in_hub_forms)

_LONGEST_ID = 64
_KEPT_HERE = ("store", "previous_response_id")
_INSTRUCTING = ("system", "developer")


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = copy_request(request, ctx, HUB_RESPONSES)
    body["model"] = ctx.target.model
    for name in _KEPT_HERE:
        if body.pop(name, None) is not None:
            ctx.receipt.record_drop((name,), "dragoman keeps responses itself", "form")
    _write_input(body, ctx)
    if ctx.profile == "documented":
        beside_the_input(body, ctx)
        if isinstance(body.get("input"), list):
            body["input"] = input_messages(body["input"], ctx)
    _nest(body, ctx)
    rules = load_validator("databricks/responses.request", ctx.profile)
    clamp_effort(body, rules, ctx, ("reasoning", "effort"), HUB_RESPONSES)
    if body.get("stream"):
        ctx.receipt.record_fill(("stream_options",), "so that the stream tells the usage")
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
        ctx.receipt.record_conversion(("input", i), "only users and assistants speak here", after=("instructions",))
    if texts:
        body["instructions"] = "\n\n".join(texts)
    kept = [i for i, item in enumerate(items) if item.get("role") not in _INSTRUCTING]
    ctx.receipt.map_paths([(("input", i), ("input", new)) for new, i in enumerate(kept)])
    body["input"] = [_item(items[i], ("input", new), ctx) for new, i in enumerate(kept)]


def _item(item: JsonObject, path: Path, ctx: Context) -> JsonObject:
    item_id = item.get("id")
    if isinstance(item_id, str) and len(item_id) > _LONGEST_ID:
        ctx.receipt.record_drop((*path, "id"), f"ids of more than {_LONGEST_ID} characters are refused", "form")
        return {key: value for key, value in item.items() if key != "id"}
    return item


def _nest(body: JsonObject, ctx: Context) -> None:
    if body.get("tools"):
        body["tools"] = [nested_tool(tool) for tool in body["tools"]]
        ctx.receipt.record_conversion(("tools",), "nested as in chat")
        places = [
            (("tools", i), ("tools", i, "function")) for i, tool in enumerate(body["tools"]) if "function" in tool
        ]
        ctx.receipt.map_paths(places)
    if isinstance(body.get("tool_choice"), dict):
        body["tool_choice"] = nested_choice(body["tool_choice"])
        ctx.receipt.record_conversion(("tool_choice",), "nested as in chat")
        ctx.receipt.map_paths([(("tool_choice",), ("tool_choice", "function"))])
    text: Any = body.get("text")
    if isinstance(text, dict) and isinstance(text.get("format"), dict):
        body["text"] = {**text, "format": nested_format(text["format"])}
        ctx.receipt.record_conversion(("text", "format"), "nested as in chat")
        ctx.receipt.map_paths([(("text", "format"), ("text", "format", "json_schema"))])


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_response(reply, REPLY_RULES, ctx)


def read_stream(ctx: Context) -> ResponsesStreamReader:
    return ResponsesStreamReader(REPLY_RULES, ctx)


CALLED = Called(write_request, read_reply, read_stream, REPLY_RULES.read_fault)
