"""The databricks dialect of Responses as its reference describes it, called.

The input has only users and assistants, so system and developer messages go into `instructions`. Tools, tool choice and
formats are nested as in chat. Databricks stores no responses and answers 400 to fields about that, so they are not
sent. Function calls and their outputs are blocks in messages.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.chat.messages import extract_text
from dragoman.adapters.common.parameters import clamp_effort, copy_request, wants_usage
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.fit import fit
from dragoman.adapters.request_properties import HUB_RESPONSES
from dragoman.adapters.responses.foreign_reasoning import drop_foreign_reasoning
from dragoman.adapters.validation import load_validator

from .addresses import names_model_in_body, responses_path
from .encrypted_reasoning import move_reasoning_out_of_input
from .endpoint import invocations_path
from .faults import WORDS
from .function_blocks import pack_input_messages
from .hub_forms import convert_to_hub_forms
from .shapes import nest_choice, nest_format, nest_tool

__all__ = ["REPLY_RULES", "write_request"]

REPLY_RULES = ReplyRules("databricks", words=WORDS, to_hub_forms=convert_to_hub_forms)

_HANDLED_BY_DRAGOMAN = ("store", "previous_response_id")
_INSTRUCTING = ("system", "developer")


def write_request(request: JsonObject, ctx: Context) -> Call:
    """Return the call of the target's endpoint with the request in the reference's form. Raises Fault."""
    body = copy_request(request, ctx, HUB_RESPONSES)
    body["model"] = ctx.target.model
    drop_foreign_reasoning(body, ctx)
    for name in _HANDLED_BY_DRAGOMAN:
        if body.pop(name, None) is not None:
            ctx.receipt.record_drop((name,), "dragoman keeps responses itself", "form")
    _move_instructions(body, ctx)
    move_reasoning_out_of_input(body, ctx)
    if isinstance(body.get("input"), list):
        body["input"] = pack_input_messages(body["input"], ctx)
    _nest_settings(body, ctx)
    rules = load_validator("databricks/responses.request", ctx.profile)
    clamp_effort(body, rules, ctx, ("reasoning", "effort"), HUB_RESPONSES)
    if body.get("stream"):
        if not wants_usage(ctx.call.body):
            ctx.receipt.record_fill(("stream_options",), "so that the stream reports usage")
        body["stream_options"] = {"include_usage": True}
    fit(body, rules, ctx, "drop", HUB_RESPONSES)
    by_body = names_model_in_body(ctx.target)
    return Call("POST", responses_path(ctx.target) if by_body else invocations_path(ctx.target.model), body)


def _move_instructions(body: JsonObject, ctx: Context) -> None:
    """Move system and developer messages from the input to `instructions`, in place."""
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
    body["input"] = [items[i] for i in kept]


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
