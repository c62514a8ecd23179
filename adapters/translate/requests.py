"""Translates requests between chat and Responses, in hub form.

A parameter keeps its name and value, moves to another place, or has no place in the other protocol. The last kind
follows the policy for unsupported fields (`adapters/fit.py`). Keys that are not in the hub's schema follow the policy
for extra parameters.
"""

from __future__ import annotations

from functools import cache, partial

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.messages import list_shifted_places, put_instructions_first
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Places, nest_places
from dragoman.adapters.request_properties import HUB_CHAT, HUB_RESPONSES
from dragoman.schemas import Schema, load

from .items import to_items
from .messages import to_messages
from .parameters import (
    ask_for_usage,
    copy_parameters,
    drop_stream_options,
    find_holder,
    move_member,
    nest,
    rename,
    resolve_rest,
    take_common,
)
from .plain_chat import to_plain_chat
from .tools import list_tools, to_chat_tool_choice, to_chat_tools, to_responses_tool_choice, to_responses_tools
from .unused_keys import record_unused_keys

__all__ = ["to_chat_request", "to_full_chat_request", "to_responses_request"]

_SAME = frozenset(
    {
        "model",
        "temperature",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "metadata",
        "user",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "service_tier",
        "parallel_tool_calls",
        "stream",
        "client_request_id",
        "usage_context",
        "extra_params",
    }
)
_HOLDERS = ("reasoning", "text")  # parameters whose members are translated one by one
_LOGPROBS = "message.output_text.logprobs"
_ENCRYPTED_REASONING = "reasoning.encrypted_content"


def to_chat_request(request: JsonObject, ctx: Context) -> JsonObject:
    """Translate a Responses request to chat. Raises Fault, with the path as the client wrote it.

    `input` must already hold the items of the conversation that `previous_response_id` continues.
    """
    return to_plain_chat(to_full_chat_request(request, ctx), ctx)


def to_full_chat_request(request: JsonObject, ctx: Context) -> JsonObject:
    """As `to_chat_request`, for another translation: what providers of chat do not accept is still there. Raises
    Fault."""
    left = copy_parameters(request, HUB_RESPONSES, ctx)
    tools = list_tools(left)
    made = take_common(left, _same_in_chat())
    instructions = left.pop("instructions", None)
    made["messages"] = to_messages(left.pop("input", None) or [], ctx)
    if instructions:
        ctx.receipt.record_conversion(("instructions",), "instructions become the first message", after=("messages", 0))
        ctx.receipt.map_paths_below("messages", partial(list_shifted_places, ("instructions",), len(made["messages"])))
        made["messages"] = put_instructions_first(instructions, made["messages"])
    rename(left, made, "max_output_tokens", "max_completion_tokens", ctx)
    move_member(left, made, ("reasoning", "effort"), "reasoning_effort", ctx)
    move_member(left, made, ("text", "verbosity"), "verbosity", ctx)
    _set_chat_format(left, made, ctx)
    _set_chat_logprobs(left, made, ctx)
    choice = left.pop("tool_choice", None)
    left.pop("tools", None)
    if tools:
        made["tools"] = to_chat_tools(tools, choice, ctx)
    if choice is not None and made.get("tools"):
        made["tools"], made["tool_choice"] = to_chat_tool_choice(choice, made["tools"], ctx)
    elif choice is not None:
        ctx.receipt.record_drop(("tool_choice",), "the request has no tools left to choose from", "form")
    if not made.get("tools"):
        made.pop("tools", None)
        if made.pop("parallel_tool_calls", None) is not None:
            ctx.receipt.record_drop(("parallel_tool_calls",), "the request has no tools left to call", "form")
    if left.pop("store", None) is not None:
        ctx.receipt.record_drop(("store",), "dragoman stores responses itself", "form")
    resolve_rest(left, made, HUB_RESPONSES, "chat", ctx, _HOLDERS)
    if not made["messages"]:
        text = "input is empty, and the model's provider needs at least one message"
        raise Fault("invalid_request", text, ("input",), code="empty_input")
    ask_for_usage(made, "Responses", ctx)
    return made


def to_responses_request(request: JsonObject, ctx: Context) -> JsonObject:
    """Translate a chat request to Responses. Raises Fault, with the path as the client wrote it."""
    left = copy_parameters(request, HUB_CHAT, ctx)
    made = take_common(left, _SAME)
    instructions, made["input"] = to_items(left.pop("messages"), ctx)
    if not made["input"]:
        text = "messages say nothing, and the model's provider needs at least one item"
        raise Fault("invalid_request", text, ("messages",), code="empty_input")
    if instructions is not None:
        made["instructions"] = instructions
    if "max_completion_tokens" in left:
        rename(left, made, "max_completion_tokens", "max_output_tokens", ctx)
    if left.get("max_tokens") is not None and "max_output_tokens" not in made:
        rename(left, made, "max_tokens", "max_output_tokens", ctx)
    made["store"] = left.pop("store", None)
    if made["store"] is None:
        ctx.receipt.record_fill(("store",), "chat does not store replies by default, Responses does")
        made["store"] = False
    nest(left, made, "reasoning_effort", ("reasoning", "effort"), ctx)
    nest(left, made, "verbosity", ("text", "verbosity"), ctx)
    _set_responses_format(left, made, ctx)
    _set_responses_logprobs(left, made, ctx)
    if tools := left.pop("tools", None):
        made["tools"] = to_responses_tools(tools, ctx)
    if (choice := left.pop("tool_choice", None)) is not None:
        made["tool_choice"] = to_responses_tool_choice(choice, ctx)
    drop_stream_options(left, "Responses", ctx)
    resolve_rest(left, made, HUB_CHAT, "Responses", ctx)
    return made


@cache
def _same_in_chat() -> frozenset[str]:
    """The parameters with the same name in chat: also those that providers add to OpenAI's, as `top_k`, which Responses
    clients send too."""
    hub: dict[str, Schema] = load(HUB_CHAT)["properties"]
    return _SAME | {name for name, rule in hub.items() if rule.get("x-extension") and "x-dialect" not in rule}


def _set_chat_format(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    text = left.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    if not isinstance(text, dict) or form is None:
        return
    left["text"] = {key: value for key, value in text.items() if key != "format"}
    if form.get("type") == "json_schema":
        described = {key: value for key, value in form.items() if key != "type"}
        made["response_format"] = {"type": "json_schema", "json_schema": described}
    else:
        made["response_format"] = form
    places = [("response_format",), ("response_format", "json_schema")]
    ctx.receipt.map_paths([(("text", "format"), place) for place in places])
    ctx.receipt.record_conversion(("text", "format"), "the other protocol's place for it", after=("response_format",))


def _set_responses_format(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    form = left.pop("response_format", None)
    if form is None:
        return
    record_unused_keys(form, ("type", "json_schema"), ("response_format",), ctx, "Responses")
    flat = {"type": form["type"], **(form.get("json_schema") or {})}
    find_holder(made, "text", "response_format", ctx)["format"] = flat
    ctx.receipt.record_conversion(("response_format",), "the other protocol's place for it", after=("text", "format"))
    schema: Places = [((key,), (key,)) for key in form.get("json_schema") or ()]
    places = [*nest_places(schema, ("json_schema",), ()), ((), ())]
    ctx.receipt.map_paths(nest_places(places, ("response_format",), ("text", "format")))


def _set_chat_logprobs(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    include = left.pop("include", None) or []
    top = left.pop("top_logprobs", None)
    for i, wanted in enumerate(include):
        if wanted == _ENCRYPTED_REASONING:
            ctx.receipt.record_drop(("include", i), "encrypted reasoning is returned without a request for it", "form")
        elif wanted != _LOGPROBS:
            ctx.receipt.record_drop(("include", i), "chat cannot include this")
    if _LOGPROBS in include or top:
        made["logprobs"] = True
        asked = "include" if _LOGPROBS in include else "top_logprobs"
        ctx.receipt.record_conversion((asked,), "chat requests log probabilities with a flag", after=("logprobs",))
        ctx.receipt.map_paths([((asked,), ("logprobs",))])
        if top is not None:
            made["top_logprobs"] = top
    elif top is not None:
        ctx.receipt.record_drop(("top_logprobs",), "0 means none", "form")


def _set_responses_logprobs(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    wanted, top = left.pop("logprobs", None), left.pop("top_logprobs", None)
    if top is not None and not wanted:
        ctx.receipt.record_drop(("top_logprobs",), "it means nothing without logprobs", "form")
    if wanted is False:
        ctx.receipt.record_drop(("logprobs",), "leaving it out means the same", "form")
    if wanted:
        made["include"] = [_LOGPROBS]
        made["top_logprobs"] = top or 0
        if top is None:
            ctx.receipt.record_fill(("top_logprobs",), "0 alternatives of each token, as chat has by default")
        ctx.receipt.record_conversion(
            ("logprobs",), "Responses requests log probabilities with include", after=("include",)
        )
        ctx.receipt.map_paths([(("logprobs",), ("include",))])
