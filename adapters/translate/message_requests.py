"""Translates the parameters of requests between Messages and chat, in hub form.

    Messages                                    chat
    ------------------------------------------  ------------------------------------------------------------
    system, messages                            messages (`turns_to_chat`, `chat_to_turns`)
    tools, tool_choice                          tools, tool_choice, parallel_tool_calls (`message_tools`)
    max_tokens                                  max_completion_tokens, max_tokens
    stop_sequences                              stop
    output_config.effort, thinking              reasoning_effort, thinking (`thinking_settings`)
    output_config.format, output_format         response_format
    metadata.user_id                            safety_identifier, user
    service_tier: auto, standard_only           auto, default
    temperature, top_p, top_k, cache_control    the same
    anything else                               the policy for unsupported fields (`adapters/fit.py`)

Sources: anthropic 2.12.0, MessageCreateParams; OpenAI OpenAPI 2.3, CreateChatCompletionRequest.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.fit import drop_or_reject
from dragoman.adapters.messages.headers import drop_betas
from dragoman.adapters.paths import Path
from dragoman.adapters.request_properties import HUB_CHAT, HUB_MESSAGES

from .chat_to_turns import chat_to_turns
from .content_blocks import keep_marks
from .message_tools import to_chat_tools, to_message_tools
from .parameters import (
    ask_for_usage,
    copy_parameters,
    drop_stream_options,
    find_holder,
    rename,
    resolve_rest,
    take_common,
)
from .plain_chat import to_plain_chat
from .strict_schemas import is_strict
from .thinking_settings import set_chat_reasoning, set_thinking
from .turns_to_chat import turns_to_chat
from .unused_keys import record_unused_keys

__all__ = ["messages_to_chat_request", "messages_to_full_chat_request", "to_messages_request"]

_PROTOCOL = "Messages"
_SAME = frozenset({"model", "temperature", "top_p", "top_k", "stream"})
_HOLDERS = ("output_config",)  # parameters whose members are translated one by one
_TIERS = {"auto": "auto", "standard_only": "default"}
_TIERS_BACK = {name: tier for tier, name in _TIERS.items()}
_LONGEST_USER = 64
"""Characters of the user's name. Sources: OpenAI Python SDK, safety_identifier; OpenRouter takes 128
(ujisati/claude-code-provider-proxy#11), Claude Code sends more."""
_FORMAT_NAME = "answer"


def messages_to_chat_request(request: JsonObject, ctx: Context) -> JsonObject:
    """Translate a Messages request to chat. Raises Fault, with the path as the client wrote it."""
    return to_plain_chat(messages_to_full_chat_request(request, ctx), ctx)


def messages_to_full_chat_request(request: JsonObject, ctx: Context) -> JsonObject:
    """As `messages_to_chat_request`, for another translation: what providers of chat do not accept is still there.

    Raises Fault.
    """
    drop_betas(ctx)
    left = copy_parameters(request, HUB_MESSAGES, ctx)
    made = take_common(left, _SAME)
    made["messages"] = turns_to_chat(left.pop("system", None), left.pop("messages"), ctx)
    rename(left, made, "max_tokens", "max_completion_tokens", ctx)
    rename(left, made, "stop_sequences", "stop", ctx)
    set_chat_reasoning(left, made, ctx)
    _set_chat_format(left, made, ctx)
    _set_user(left, made, ctx)
    _convert_tier(left, made, _TIERS, ctx)
    made |= keep_marks(left, (), ctx)
    left.pop("cache_control", None)
    to_chat_tools(left, made, ctx)
    resolve_rest(left, made, HUB_MESSAGES, "chat", ctx, _HOLDERS)
    if not made["messages"]:
        text = "messages say nothing, and the model's provider needs at least one message"
        raise Fault("invalid_request", text, ("messages",), code="empty_input")
    if made["messages"][-1]["role"] == "assistant":
        path: Path = ("messages", len(made["messages"]) - 1)
        ctx.receipt.record_conversion(path, "a chat model answers it in a new message instead of continuing it", "loss")
    ask_for_usage(made, _PROTOCOL, ctx)
    return made


def to_messages_request(request: JsonObject, ctx: Context) -> JsonObject:
    """Translate a chat request to Messages. Raises Fault, with the path as the client wrote it."""
    left = copy_parameters(request, HUB_CHAT, ctx)
    made = take_common(left, _SAME | {"cache_control"})
    system, made["messages"] = chat_to_turns(left.pop("messages"), ctx)
    if not made["messages"]:
        text = "messages say nothing, and the model's provider needs at least one message"
        raise Fault("invalid_request", text, ("messages",), code="empty_input")
    if system is not None:
        made["system"] = system
    _set_max_tokens(left, made, ctx)
    _set_stop_sequences(left, made, ctx)
    _set_output_format(left, made, ctx)
    _set_user_id(left, made, ctx)
    _convert_tier(left, made, _TIERS_BACK, ctx)
    to_message_tools(left, made, ctx)
    set_thinking(left, made, ctx)
    drop_stream_options(left, _PROTOCOL, ctx)
    resolve_rest(left, made, HUB_CHAT, _PROTOCOL, ctx)
    return made


def _set_chat_format(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    config = left.get("output_config")
    path: Path = ("output_format",)
    form = left.pop("output_format", None)
    if isinstance(config, dict) and config.get("format") is not None:
        if form is not None:
            ctx.receipt.record_drop(path, "output_config.format replaces it", "form")
        path, form = ("output_config", "format"), config["format"]
        left["output_config"] = {key: value for key, value in config.items() if key != "format"}
    if form is None:
        return
    record_unused_keys(form, ("type", "schema"), path, ctx, "chat")
    schema = form["schema"]
    described: JsonObject = {"name": _FORMAT_NAME, "schema": schema}
    if is_strict(schema):
        described["strict"] = True
        ctx.receipt.record_fill(("response_format", "json_schema", "strict"), "Messages always follows the schema")
    else:
        reason = "chat follows only schemas that require all keys and allow no others"
        ctx.receipt.record_conversion((*path, "schema"), reason, "loss")
    ctx.receipt.record_fill(("response_format", "json_schema", "name"), "chat requires a name")
    made["response_format"] = {"type": form["type"], "json_schema": described}
    ctx.receipt.record_conversion(path, "the other protocol's place for it", after=("response_format",))
    inner: Path = ("response_format", "json_schema")
    ctx.receipt.map_paths([((*path, "schema"), (*inner, "schema")), (path, inner), (path, ("response_format",))])


def _set_output_format(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    form = left.get("response_format")
    if form is None or form["type"] not in ("text", "json_schema"):
        return  # JSON without a schema: it is emulated, or refused
    del left["response_format"]
    path: Path = ("response_format",)
    if form["type"] == "text":
        ctx.receipt.record_drop(path, "leaving it out means the same", "form")
        return
    described, inner = form["json_schema"], (*path, "json_schema")
    record_unused_keys(form, ("type", "json_schema"), path, ctx, _PROTOCOL)
    record_unused_keys(described, ("name", "schema", "strict"), inner, ctx, _PROTOCOL)
    for key in ("name", "strict"):
        if described.get(key) is not None:
            ctx.receipt.record_drop((*inner, key), "Messages always follows the schema, which has no name", "form")
    find_holder(made, "output_config", "response_format", ctx)["format"] = {
        "type": "json_schema",
        "schema": described.get("schema") or {"type": "object"},
    }
    after: Path = ("output_config", "format")
    ctx.receipt.record_conversion(path, "the other protocol's place for it", after=after)
    ctx.receipt.map_paths([((*inner, "schema"), (*after, "schema")), (path, after)])


def _set_user(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    metadata = left.pop("metadata", None) or {}
    record_unused_keys(metadata, ("user_id",), ("metadata",), ctx, "chat")
    user, path = metadata.get("user_id"), ("metadata", "user_id")
    if user is None:
        return
    if len(user) > _LONGEST_USER:
        ctx.receipt.record_drop(path, f"chat takes at most {_LONGEST_USER} characters; it is advisory")
        return
    made["user"] = user
    ctx.receipt.record_rename(path, ("user",), "the other protocol's name for it")


def _set_user_id(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    if "metadata" in left:
        drop_or_reject(left, ("metadata",), ctx, f"{_PROTOCOL} has another parameter of this name", HUB_CHAT)
    user, other = left.pop("safety_identifier", None), left.pop("user", None)
    name = "user" if user is None else "safety_identifier"
    if user is not None and other not in (None, user):
        ctx.receipt.record_drop(("user",), "safety_identifier replaces it")
    value = other if user is None else user
    if value is not None:
        find_holder(made, "metadata", name, ctx)["user_id"] = value
        ctx.receipt.record_rename((name,), ("metadata", "user_id"), "the other protocol's place for it")


def _convert_tier(left: JsonObject, made: JsonObject, names: dict[str, str], ctx: Context) -> None:
    """Give a service tier its other name; one without stays in `left`."""
    tier: Any = left.get("service_tier")
    if tier in names:
        made["service_tier"] = names[left.pop("service_tier")]
        if made["service_tier"] != tier:
            ctx.receipt.record_conversion(("service_tier",), "the other protocol's name for this tier")


def _set_max_tokens(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    """Set the limit on tokens. If the request has none, the writer fills it in, because the API requires it."""
    newer, older = left.pop("max_completion_tokens", None), left.pop("max_tokens", None)
    if newer is not None:
        if older is not None:
            ctx.receipt.record_drop(("max_tokens",), "max_completion_tokens replaces it", "form")
        made["max_tokens"] = newer
        ctx.receipt.record_rename(("max_completion_tokens",), ("max_tokens",), "the other protocol's name for it")
    elif older is not None:
        made["max_tokens"] = older


def _set_stop_sequences(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    stop = left.pop("stop", None)
    if not stop:
        if stop is not None:
            ctx.receipt.record_drop(("stop",), "leaving it out means the same", "form")
        return
    made["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    ctx.receipt.record_rename(("stop",), ("stop_sequences",), "the other protocol's name for it")
