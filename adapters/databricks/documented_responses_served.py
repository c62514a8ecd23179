"""The databricks dialect of Responses as its reference describes it, served.

Tools, tool choice and formats are nested as in chat. The response repeats them as the client wrote them, reports usage
under Databricks' names, and its output has only messages.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.parameters import wants_usage
from dragoman.adapters.common.usage import UNASKED_USAGE
from dragoman.adapters.responses.requests import check_request
from dragoman.adapters.responses.writer import ResponsesStreamWriter
from dragoman.adapters.validation import load_validator
from dragoman.schemas import load

from .encrypted_reasoning import move_reasoning_into_input
from .faults import error_event
from .function_blocks import pack_output_items, unpack_input_items
from .invocations import parse_endpoint_name
from .rendering import DocumentedEvents
from .shapes import flatten_choice, flatten_format, flatten_tool, nest_choice, nest_tool

__all__ = ["read_request", "write_reply", "write_stream"]


def read_request(call: Call, ctx: Context) -> JsonObject:
    """Read a request in the reference's form. Raises Fault."""
    body = _set_model(call, ctx)
    check_request(body, load_validator("databricks/responses.request", ctx.profile))
    _flatten(body, ctx)
    if isinstance(body["input"], list):
        body["input"] = unpack_input_items(body["input"], ctx)
    move_reasoning_into_input(body, ctx)
    _drop_usage_option(body, ctx)
    return body


def _set_model(call: Call, ctx: Context) -> JsonObject:
    """Return the body with the model that the address names. The documented API requires one in the body too."""
    body, endpoint = dict(call.body), parse_endpoint_name(call.path)
    if endpoint is None or "model" not in body:
        return body
    ctx.receipt.record_drop(("model",), "the address names the endpoint", "form")
    body["model"] = endpoint
    return body


def _flatten(body: JsonObject, ctx: Context) -> None:
    """Convert the body's tools, tool choice and format to the hub's flat forms, in place."""
    tools: Any = body.get("tools")
    if isinstance(tools, list):
        body["tools"] = [flatten_tool(tool) for tool in tools]
        for i, tool in enumerate(tools):
            if "function" in tool:
                ctx.receipt.record_conversion(("tools", i), "tools are flat in the hub")
                ctx.receipt.map_paths([(("tools", i, "function"), ("tools", i))])
    choice: Any = body.get("tool_choice")
    if isinstance(choice, dict) and "function" in choice:
        body["tool_choice"] = flatten_choice(choice)
        ctx.receipt.record_conversion(("tool_choice",), "it is flat in the hub")
        ctx.receipt.map_paths([(("tool_choice", "function"), ("tool_choice",))])
    text: Any = body.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    if isinstance(form, dict) and "json_schema" in form:
        body["text"] = {**text, "format": flatten_format(form)}
        ctx.receipt.record_conversion(("text", "format"), "it is flat in the hub")
        ctx.receipt.map_paths([(("text", "format", "json_schema"), ("text", "format"))])


def _drop_usage_option(body: JsonObject, ctx: Context) -> None:
    options = body.get("stream_options")
    if isinstance(options, dict) and "include_usage" in options:
        ctx.receipt.record_drop(("stream_options", "include_usage"), "a hub stream always reports usage", "form")
        body["stream_options"] = None


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    """Write a response in the reference's form."""
    return Reply(200, _write_response(reply, ctx))


def _write_response(reply: JsonObject, ctx: Context) -> JsonObject:
    body = {**reply, **_repeat_settings(reply, ctx)}
    usage, error = body.get("usage"), body.get("error")
    if isinstance(error, dict):
        kind = _ERROR_TYPES.get(str(error.get("code")), "invalid_request_error")
        body["error"] = {"param": None, "type": kind, **error}
        ctx.receipt.record_conversion(("error",), "an error has a type and a parameter")
    counted = isinstance(usage, dict) and {"input_tokens", "output_tokens", "total_tokens"} <= usage.keys()
    if usage is not None and counted:  # replies that were not normalized may lack anything
        body["usage"] = _usage_counts(usage)
        ctx.receipt.record_conversion(("usage",), "the counts get Databricks' names")
        _record_lost_counts(usage, ctx)
    body["output"] = pack_output_items(reply.get("output") or [], ctx)
    documented, known = load("databricks/responses.reply")["properties"], load("hub/responses.reply")["properties"]
    unwritten = [key for key in body if key in known and key not in documented]
    for key in unwritten:
        _record_unwritten(key, body.pop(key), ctx)
    return body


def _record_unwritten(key: str, value: Any, ctx: Context) -> None:
    repeats = key in load("hub/responses.request")["properties"] or key in _OF_THE_ANSWER
    if value not in (None, [], {}):
        is_known = value == "default" if key == "service_tier" else repeats
        ctx.receipt.record_drop((key,), _NOT_DOCUMENTED, "form" if is_known else "loss")


_NOT_DOCUMENTED = "the documented response does not have it"
_OF_THE_ANSWER = ("background", "completed_at")
_ERROR_TYPES = {
    "server_error": "server_error",
    "server_is_overloaded": "server_error",
    "slow_down": "server_error",
    "rate_limit_exceeded": "rate_limit_error",
    "insufficient_quota": "rate_limit_error",
}


def _repeat_settings(reply: JsonObject, ctx: Context) -> JsonObject:
    """Return tools, tool choice and format as the request has them, or nested if the request lacks them."""
    settings: JsonObject = {}
    request = ctx.call.body
    if "tools" in reply:
        settings["tools"] = request.get("tools") or _nest_tools(reply["tools"], ctx)
    if "tool_choice" in reply:
        settings["tool_choice"] = request.get("tool_choice") or nest_choice(reply["tool_choice"])
    if isinstance(request.get("text"), dict):
        settings["text"] = {**(reply.get("text") or {}), **request["text"]}
    for key, value in settings.items():
        if value and value != reply[key]:
            ctx.receipt.record_conversion((key,), "as the request has it, and nested as in chat")
    return settings


def _nest_tools(given: Any, ctx: Context) -> list[JsonObject]:
    """Return the tools that only the provider names in the nested form, which only functions have."""
    tools = given if isinstance(given, list) else []
    functions = [tool for tool in tools if isinstance(tool, dict) and tool.get("type") == "function"]
    if len(functions) < len(tools) or (given and not tools):
        ctx.receipt.record_drop(("tools",), _NOT_DOCUMENTED)
    return [nest_tool(tool) for tool in functions]


def _usage_counts(usage: JsonObject) -> JsonObject:
    """Return the token counts under Databricks' names."""
    counts = {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
    }
    details = usage.get("output_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return {**counts, "reasoning_tokens": reasoning} if reasoning else counts


def _record_lost_counts(usage: JsonObject, ctx: Context) -> None:
    """Record as losses the parts of the usage that the documented one does not have."""
    for name, value in usage.items():
        if isinstance(value, dict):
            for key in [key for key in value if value[key] and key != "reasoning_tokens"]:
                ctx.receipt.record_drop(("usage", name, key), _NOT_DOCUMENTED)
        elif value and name not in ("input_tokens", "output_tokens", "total_tokens"):
            ctx.receipt.record_drop(("usage", name), _NOT_DOCUMENTED)


def write_stream(ctx: Context) -> ResponsesStreamWriter:
    """Make the writer of a stream's events. They report usage if the client asked for that."""
    documented, reports_usage = DocumentedEvents(ctx), wants_usage(ctx.call.body)

    def render(event: JsonObject) -> JsonObject | None:
        if not isinstance(event.get("response"), dict):
            return documented.render(event)
        response = _write_response(event["response"], ctx)
        if not reports_usage:
            if response.get("usage"):
                ctx.receipt.record_drop(("usage",), UNASKED_USAGE, "form")
            response["usage"] = None
        return {**event, "response": response}

    return ResponsesStreamWriter(error_event, render)
