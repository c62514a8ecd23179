"""Translates whole replies between chat and Responses, in hub form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.reasoning import SEPARATOR
from dragoman.adapters.chat.spoken_answers import replace_audio
from dragoman.adapters.chat.tool_calls import NO_ARGUMENTS
from dragoman.adapters.common.annotations import filter_annotations
from dragoman.adapters.common.carried_keys import CARRIED_KEYS, copy_carried_keys
from dragoman.adapters.common.usage import normalize_usage
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.paths import Path
from dragoman.adapters.request_properties import HUB_RESPONSES
from dragoman.adapters.responses.events import TOKEN_BYTES, add_token_bytes
from dragoman.adapters.responses.response_object import new_response, to_responses_usage
from dragoman.schemas import load

from .annotations import NO_ANNOTATION, to_chat_annotation, to_responses_annotation
from .built_in_calls import to_built_in_call
from .reasoning import join_reasoning, list_reasoning
from .tools import OriginalTool, decode_free_text, map_tool_names
from .unused_keys import ITEM_KEYS, PART_KEYS, carry_reply_keys, record_unused_keys

__all__ = [
    "CALL_KEYS",
    "CHAT_COUNTS",
    "CHOICE_KEYS",
    "MESSAGE_KEYS",
    "MORE_CHOICES",
    "NO_TEXT",
    "SECOND_CALL",
    "complete_response",
    "list_legacy_call",
    "read_arguments",
    "read_envelope",
    "read_failure",
    "says_only_text",
    "take_first_choice",
    "to_chat_reply",
    "to_chat_usage",
    "to_output",
    "to_responses_reply",
]

CALL_KEYS = frozenset({"index", "id", "type", "function", "custom", *CARRIED_KEYS})
CHOICE_KEYS = frozenset({"index", "message", "delta", "logprobs", "finish_reason", "native_finish_reason"})
MESSAGE_KEYS = frozenset(
    {
        "role",
        "content",
        "refusal",
        "annotations",
        "audio",
        "tool_calls",
        "function_call",
        "reasoning_content",
        "reasoning_signature",
        "reasoning_details",
    }
)
"""The keys of a tool call, a choice, and a message or delta of chat that Responses can express."""

MORE_CHOICES = "a response has only one choice"

CHAT_COUNTS = "counts get the names of chat"
NO_TEXT = "the annotations belong to no text"
SECOND_CALL = "the calls in tool_calls are used"

_ONLY_TEXT = (["role", "content"], ["content", "role"])

_CHAT_REPLY, _RESPONSE = "hub/chat.reply", "hub/responses.reply"
_CHAT_USED = frozenset({"id", "object", "created", "model", "choices", "usage", "service_tier"})
_DEFAULT_TIER = "default"
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_FINISH = {reason: finish for finish, reason in _INCOMPLETE.items()}


def to_responses_reply(reply: JsonObject, request: JsonObject, response_id: str, ctx: Context) -> JsonObject:
    """Translate a chat reply to a response to `request`, the Responses request in hub form."""
    position, choice = take_first_choice(reply["choices"], ctx)
    finish = choice["finish_reason"]
    status = "incomplete" if finish in _INCOMPLETE else "completed"
    if says_only_text(choice):
        output = [_make_message([_make_text(choice["message"]["content"])], ctx)]
    else:
        output = to_output(choice, map_tool_names(request), ctx, position)
    if output and status == "incomplete":
        output[-1]["status"] = "incomplete"
    base = new_response(request, response_id, reply["model"], reply["created"])
    made = complete_response(base, reply, ctx)
    made["status"] = status
    made["completed_at"] = int(ctx.clock()) if status == "completed" else None
    made["incomplete_details"] = {"reason": _INCOMPLETE[finish]} if finish in _INCOMPLETE else None
    made["output"] = output
    made["usage"] = to_responses_usage(reply.get("usage"))
    return made


def complete_response(base: JsonObject, reply: JsonObject, ctx: Context) -> JsonObject:
    """Add to a response object what a chat reply, or all chunks of a stream together, says outside of the choices.

    `base` repeats the settings of the request.
    """
    reason = "a choice becomes items; a response also repeats the settings of the request"
    ctx.receipt.record_conversion(("choices",), reason, after=("output",))
    if reply.get("usage"):
        ctx.receipt.record_conversion(("usage",), "counts get the names of Responses; a missing detail is 0")
    made = {**base, **carry_reply_keys(reply, base, (_CHAT_REPLY, _RESPONSE), _CHAT_USED, ctx)}
    if tier := reply.get("service_tier"):
        made["service_tier"] = tier
    else:
        ctx.receipt.record_fill(("service_tier",), "the provider named none")
    return made


def take_first_choice(choices: list[JsonObject], ctx: Context) -> tuple[int, JsonObject]:
    """Choice 0, which the reader guarantees, and its position. The others are recorded as dropped."""
    if len(choices) == 1 and choices[0]["index"] == 0:
        return 0, choices[0]
    first = next(position for position, choice in enumerate(choices) if choice["index"] == 0)
    for position in range(len(choices)):
        if position != first:
            ctx.receipt.record_drop(("choices", position), MORE_CHOICES)
    return first, choices[first]


def says_only_text(choice: JsonObject) -> bool:
    """Whether a choice of chat has a text and nothing else that another protocol has a place for, or lacks one for."""
    message = choice["message"]
    if not (choice.keys() <= CHOICE_KEYS and message.keys() <= MESSAGE_KEYS) or choice.get("logprobs"):
        return False
    return bool(message.get("content")) and [key for key in message if message[key]] in _ONLY_TEXT


def to_output(
    choice: JsonObject, names: Mapping[str, OriginalTool], ctx: Context, position: int = 0
) -> list[JsonObject]:
    """Convert the message of a chat choice to items: its reasoning, its text, its calls.

    `names` maps names of functions to the tools that they replace. `position` is the place of the choice in the reply.
    """
    message, path = choice["message"], ("choices", position, "message")
    record_unused_keys(choice, CHOICE_KEYS, path[:2], ctx, "Responses")
    record_unused_keys(message, MESSAGE_KEYS, path, ctx, "Responses")
    if message.get("audio"):
        message = replace_audio(message, path, ctx)
    items = [
        {**item, "id": ctx.new_id("rs"), "status": "completed"}
        for item in list_reasoning(message, summary=ctx.target.summarizes_reasoning)
    ]
    parts = _to_responses_parts(message, choice.get("logprobs"), path, ctx)
    if parts:
        items.append(_make_message(parts, ctx))
    _record_unused_extent(choice, path, ctx)
    calls = message.get("tool_calls") or list_legacy_call(message, ctx)
    return items + [_to_responses_call(call, names, (*path, "tool_calls", k), ctx) for k, call in enumerate(calls)]


def _make_message(parts: list[JsonObject], ctx: Context) -> JsonObject:
    return {"type": "message", "id": ctx.new_id("msg"), "status": "completed", "role": "assistant", "content": parts}


def _make_text(text: str, annotations: Sequence[JsonObject] = (), tokens: Sequence[Any] = ()) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [*annotations], "logprobs": [*tokens]}


def _record_unused_extent(choice: JsonObject, path: Path, ctx: Context) -> None:
    """Record as losses annotations and log probabilities that belong to no text, and a second form of a call."""
    message = choice["message"]
    logprobs = choice.get("logprobs") or {}
    if message.get("annotations") and not message.get("content"):
        ctx.receipt.record_drop((*path, "annotations"), NO_TEXT)
    if logprobs.get("content") and not message.get("content"):
        ctx.receipt.record_drop((*path[:2], "logprobs", "content"), "the log probabilities belong to no text")
    if logprobs.get("refusal"):
        ctx.receipt.record_drop((*path[:2], "logprobs", "refusal"), "a refusal has no log probabilities there")
    if message.get("function_call") and message.get("tool_calls"):
        ctx.receipt.record_drop((*path, "function_call"), SECOND_CALL)


def _to_responses_parts(message: JsonObject, logprobs: Any, path: Path, ctx: Context) -> list[JsonObject]:
    parts: list[JsonObject] = []
    if message.get("content"):
        tokens = (logprobs or {}).get("content") or []
        found = add_token_bytes(tokens)
        if found != tokens:
            ctx.receipt.record_conversion((*path[:2], "logprobs"), TOKEN_BYTES)
        place = (*path, "annotations")
        given = filter_annotations(message.get("annotations"))
        if len(given) < len(message.get("annotations") or ()):
            ctx.receipt.record_drop(place, NO_ANNOTATION)
        annotations = [to_responses_annotation(one, (*place, k), ctx) for k, one in enumerate(given)]
        parts.append(_make_text(message["content"], annotations, found))
    if message.get("refusal"):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    return parts


def list_legacy_call(message: JsonObject, ctx: Context) -> list[JsonObject]:
    """The call in the deprecated key `function_call`, with a new id, as a list."""
    function = message.get("function_call")
    return [{"id": ctx.new_id("call"), "function": {"name": "", "arguments": "", **function}}] if function else []


def _to_responses_call(call: JsonObject, names: Mapping[str, OriginalTool], path: Path, ctx: Context) -> JsonObject:
    kind = "custom" if call.get("type") == "custom" else "function"
    said = call[kind]
    record_unused_keys(call, CALL_KEYS, path, ctx, "Responses")
    record_unused_keys(said, ("name", "arguments", "input"), (*path, kind), ctx, "Responses")
    original = names.get(said["name"]) or OriginalTool(said["name"])
    made = original.built_in and to_built_in_call(original.built_in, call["id"], said["arguments"], path, ctx)
    if made:
        return {**made, "status": "completed"}
    if "input" in said or original.takes_free_text:
        text = said["input"] if "input" in said else decode_free_text(said["arguments"])
        item = {"type": "custom_tool_call", "id": ctx.new_id("ctc"), "input": text}
    else:
        item = {"type": "function_call", "id": ctx.new_id("fc"), "arguments": said["arguments"]}
    return {**item, **original.name_keys(), "call_id": call["id"], "status": "completed", **copy_carried_keys(call)}


def to_chat_reply(response: JsonObject, ctx: Context) -> JsonObject:
    """Translate a response to a chat reply. Raises Fault if the response failed or was cancelled."""
    status = response.get("status")
    if status not in ("completed", "incomplete"):
        raise read_failure(response)
    message = _to_chat_message(response.get("output") or [], ctx)
    reason = (response.get("incomplete_details") or {}).get("reason")
    finish = _FINISH.get(str(reason), "length") if status == "incomplete" else "stop"
    if finish == "stop" and message.get("tool_calls"):
        finish = "tool_calls"
    logprobs = message.pop("logprobs", None)
    reply = {
        "id": response["id"],
        "object": "chat.completion",
        "created": int(response["created_at"]),
        "model": response["model"],
        "choices": [{"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}],
    }
    reply |= read_envelope(response, ctx)
    usage = to_chat_usage(response.get("usage"))
    if response.get("usage"):
        ctx.receipt.record_conversion(("usage",), CHAT_COUNTS)
    return reply if usage is None else {**reply, "usage": usage}


def read_envelope(response: JsonObject, ctx: Context) -> JsonObject:
    """The keys that a complete response adds to a chat reply, or to the last chunks of a stream."""
    reason = "items become a message; chat does not repeat the settings of a request"
    ctx.receipt.record_conversion(("output",), reason, after=("choices",))
    carried = carry_reply_keys(response, {}, (_RESPONSE, _CHAT_REPLY), _list_response_keys(), ctx)
    own = {key: response[key] for key in ("service_tier", "metadata") if response.get(key)}
    if own.get("service_tier") == _DEFAULT_TIER and not ctx.request.get("service_tier"):
        del own["service_tier"]  # in a response it may be a default of dragoman's
        ctx.receipt.record_drop(("service_tier",), "leaving it out means the same", "form")
    return own | carried


@cache
def _list_response_keys() -> frozenset[str]:
    """The keys of a response that are translated, or repeat the request."""
    return frozenset(load(_RESPONSE)["properties"]).union(load(HUB_RESPONSES)["properties"])


def read_failure(response: JsonObject) -> Fault:
    """Make the fault of a response that is neither completed nor incomplete."""
    error = response.get("error") or {}
    text = error.get("message") or f"the provider's response has the status {response.get('status')}"
    code = error.get("native_code") or error.get("code")
    return read_error_object({"error": {**error, "message": text, "code": code}})


def to_chat_usage(usage: Any) -> JsonObject | None:
    """Convert the usage of a response to chat's names; None if counts are missing or invalid."""
    if not isinstance(usage, dict):
        return None
    named = {key: value for key, value in usage.items() if not key.endswith("_tokens_details")}
    for ours, theirs in (("prompt", "input"), ("completion", "output")):
        details = usage.get(f"{theirs}_tokens_details")
        if details:
            named[f"{ours}_tokens_details"] = details
    return normalize_usage(named)


def _to_chat_message(output: list[JsonObject], ctx: Context) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    thoughts: list[tuple[JsonObject, Path]] = []
    for i, item in enumerate(output):
        kind = item.get("type")
        if kind in ITEM_KEYS:
            record_unused_keys(item, ITEM_KEYS[kind], ("output", i), ctx, "chat")
        if kind == "message":
            _add_parts(message, item.get("content") or [], ("output", i, "content"), ctx)
        elif kind == "reasoning":
            thoughts.append((item, ("output", i)))
        elif kind in ("function_call", "custom_tool_call"):
            message.setdefault("tool_calls", []).append(_to_chat_call(item, ("output", i), ctx))
        else:
            ctx.receipt.record_drop(("output", i), f"chat has no place for {kind} items")
    join_reasoning(message, thoughts, ctx)
    return message


def _add_parts(message: JsonObject, parts: list[JsonObject], path: Path, ctx: Context) -> None:
    """Append the parts of one message item; the texts of two items are separated."""
    separators = {key: SEPARATOR if message[key] else "" for key in ("content", "refusal")}
    for k, part in enumerate(parts):
        record_unused_keys(part, PART_KEYS, (*path, k), ctx, "chat")
        key = "refusal" if part.get("type") == "refusal" else "content"
        text = str(part.get("refusal" if key == "refusal" else "text") or "")
        before = (message[key] or "") + (separators[key] if text else "")
        message[key] = before + text
        if text:
            separators[key] = ""
        for annotation in part.get("annotations") or ():
            if (found := to_chat_annotation(annotation, len(before))) is None:
                ctx.receipt.record_drop((*path, k, "annotations"), NO_ANNOTATION)
            else:
                message.setdefault("annotations", []).append(found)
        if part.get("logprobs"):
            message.setdefault("logprobs", {"content": [], "refusal": None})["content"] += part["logprobs"]


def read_arguments(item: JsonObject, path: Path, ctx: Context) -> str:
    """The arguments of a `function_call` item as chat has them: `{}` if the whole call has none."""
    arguments: str = item["arguments"]
    if arguments or item.get("status") == "incomplete":
        return arguments
    ctx.receipt.record_fill((*path, "arguments"), NO_ARGUMENTS)
    return "{}"


def _to_chat_call(item: JsonObject, path: Path, ctx: Context) -> JsonObject:
    if item["type"] == "custom_tool_call":
        custom = {"name": item["name"], "input": item["input"]}
        return {"id": item["call_id"], "type": "custom", "custom": custom, **copy_carried_keys(item)}
    function = {"name": item["name"], "arguments": read_arguments(item, path, ctx)}
    return {"id": item["call_id"], "type": "function", "function": function, **copy_carried_keys(item)}
