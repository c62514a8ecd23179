"""Rewrites of a conversation that several dialects need. Each returns new messages if anything changed.

Call the rewrites that move messages before those that alter single messages, so that receipts name final positions.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from itertools import pairwise
from operator import itemgetter
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.changes import Weight
from dragoman.adapters.paths import Path, Places

__all__ = [
    "Messages",
    "PlainMessages",
    "are_plain",
    "are_plain_turns",
    "convert_messages",
    "convert_refusals",
    "drop_known_tool_names",
    "drop_silent_answers",
    "extract_text",
    "is_silent",
    "join_text_parts",
    "list_shifted_places",
    "merge_system_messages",
    "order_tool_results",
    "put_instructions_first",
    "rename_developer_role",
]

Messages = list[JsonObject]

_ROLE = itemgetter("role")
_INSTRUCTING = ("system", "developer")
_MERGED = "merged into the one system message that the target takes"
_ANSWERING = ("content", "tool_calls", "refusal", "audio", "function_call")


class PlainMessages(Messages):
    """Messages that `are_plain`: whoever made this list has looked them through, so nobody else has to. Like every part
    of a request, it is never altered."""

    __slots__ = ()


def are_plain(messages: Messages) -> bool:
    """True if each message has nothing but a role, which is not `developer`, and a text: no rewrite of single messages
    concerns them."""
    if type(messages) is PlainMessages:
        return True
    roles = _list_plain_roles(messages)
    return bool(roles) and "developer" not in roles


def are_plain_turns(messages: Messages) -> bool:
    """True if messages `are_plain`, and no two of the assistant follow one another: some protocols know them as one
    turn."""
    roles = _list_plain_roles(messages)
    return bool(roles) and "developer" not in roles and ("assistant", "assistant") not in pairwise(roles)


def _list_plain_roles(messages: Messages) -> list[Any]:
    """The roles of messages that have nothing but a role and a text; empty if one has anything else."""
    try:
        roles = [one["role"] for one in messages if len(one) == 2 and type(one["content"]) is str]
    except (KeyError, TypeError):
        return []
    return roles if len(roles) == len(messages) else []


def put_instructions_first(text: Any, messages: Messages) -> Messages:
    """The messages after a system message with this text."""
    made = [{"role": "system", "content": text}, *messages]
    return PlainMessages(made) if type(messages) is PlainMessages and type(text) is str else made


def list_shifted_places(before: Path, count: int) -> Places:
    """Pair the path of a text, and those of `count` messages, with their paths when the text is the first message."""
    first: Places = [(before, ("messages", 0)), (before, ("messages", 0, "content"))]
    return [*first, *((("messages", i), ("messages", i + 1)) for i in range(count))]


def merge_system_messages(messages: Messages, ctx: Context) -> Messages:
    """Merge all system and developer messages into one, at the head. Their texts are joined by an empty line."""
    roles = [*map(_ROLE, messages)]
    if "developer" not in roles and roles.count("system") == (roles[:1] == ["system"]):
        return messages  # the most frequent cases, in few steps
    found = [i for i, role in enumerate(roles) if role in _INSTRUCTING]
    if found == [0]:
        return messages
    others = [i for i, message in enumerate(messages) if message.get("role") not in _INSTRUCTING]
    head = messages[found[0]]
    if len(found) > 1:
        head = {**head, "content": "\n\n".join(extract_text(messages[i].get("content")) for i in found)}
    if len(found) > 1:
        ctx.receipt.record_conversion(
            ("messages", found[0], "content"),
            "the other system messages are appended",
            after=("messages", 0, "content"),
        )
    for position in found:
        _record_merge(messages[position], position, found[0], ctx)
        if len(found) > 1:
            _record_part_keys(messages[position].get("content"), ("messages", position), ctx)
    ctx.receipt.map_paths(
        [(("messages", i), ("messages", 0)) for i in found]
        + [(("messages", i), ("messages", new)) for new, i in enumerate(others, 1)]
    )
    return [head, *(messages[i] for i in others)]


def order_tool_results(messages: Messages, ctx: Context) -> Messages:
    """Move each tool result directly after the message with its call, in the order of the calls."""
    if "tool" not in map(_ROLE, messages):
        return messages
    order = list(_order_by_calls(messages))
    if order == list(range(len(messages))):
        return messages
    for new, old in enumerate(order):
        if new != old and messages[old].get("role") == "tool":
            ctx.receipt.record_move(("messages", old), ("messages", new), "a tool result follows its call")
    ctx.receipt.map_paths([(("messages", old), ("messages", new)) for new, old in enumerate(order)])
    return [messages[i] for i in order]


def rename_developer_role(messages: Messages, ctx: Context) -> Messages:
    """Rename the role `developer` to `system`, its older name."""

    def convert(message: JsonObject, path: Path) -> JsonObject:
        ctx.receipt.record_conversion((*path, "role"), "the target's name for the role developer is system")
        return {**message, "role": "system"}

    return convert_messages(messages, [i for i, one in enumerate(messages) if one.get("role") == "developer"], convert)


def join_text_parts(messages: Messages, ctx: Context) -> Messages:
    """Join content that has only text parts into one string, without separators."""

    def convert(message: JsonObject, path: Path) -> JsonObject:
        content = message["content"]
        if not all(_is_text(part) for part in content):
            return message
        ctx.receipt.record_conversion((*path, "content"), "the text parts are joined into one string")
        return {**message, "content": extract_text(content)}

    return convert_messages(messages, _find_parts(messages), convert)


def convert_refusals(messages: Messages, ctx: Context) -> Messages:
    """Turn refusals into text, for targets that do not support refusals."""

    def convert(message: JsonObject, path: Path) -> JsonObject:
        if message.get("refusal"):
            ctx.receipt.record_conversion(
                (*path, "refusal"), "the refusal becomes part of the content", after=(*path, "content")
            )
            if not message.get("content"):
                ctx.receipt.map_paths([((*path, "refusal"), (*path, "content"))])
            text = extract_text(message.get("content")) + message["refusal"]
            message = {**{key: value for key, value in message.items() if key != "refusal"}, "content": text}
            ctx.receipt.record_conversion((*path, "content"), "the refusal is appended")
        content = message.get("content")
        if not isinstance(content, list) or not any(_is_refusal(part) for part in content):
            return message
        ctx.receipt.record_conversion((*path, "content"), "refusal parts become text parts")
        parts = [{"type": "text", "text": part["refusal"]} if _is_refusal(part) else part for part in content]
        return {**message, "content": parts}

    refusing = [i for i, message in enumerate(messages) if "refusal" in message]
    return convert_messages(messages, sorted({*refusing, *_find_parts(messages)}), convert)


def drop_known_tool_names(messages: Messages, ctx: Context) -> Messages:
    """Drop the name of a tool's result if the call that it answers has the same name, for targets without the key."""
    named = [i for i, message in enumerate(messages) if "name" in message]
    if not named:
        return messages
    names: dict[Any, Any] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            function = call.get("function")
            names[call.get("id")] = function.get("name") if isinstance(function, dict) else None

    def convert(message: JsonObject, path: Path) -> JsonObject:
        ctx.receipt.record_drop((*path, "name"), "the call has the same name", "form")
        return {key: value for key, value in message.items() if key != "name"}

    def repeats_name(message: JsonObject) -> bool:
        name = message.get("name")
        return message.get("role") == "tool" and name is not None and name == names.get(message.get("tool_call_id"))

    return convert_messages(messages, [i for i in named if repeats_name(messages[i])], convert)


def drop_silent_answers(messages: Messages, ctx: Context) -> Messages:
    """Drop the assistant's messages without a text and a call, for targets that refuse them."""
    silent = {i for i, message in enumerate(messages) if message.get("role") == "assistant" and is_silent(message)}
    if not silent:
        return messages
    for i in sorted(silent):
        weight: Weight = "loss" if any(messages[i][key] for key in messages[i].keys() - {"role"}) else "form"
        ctx.receipt.record_drop(("messages", i), "an answer without a text and a call", weight)
    kept = [i for i in range(len(messages)) if i not in silent]
    ctx.receipt.map_paths([(("messages", i), ("messages", new)) for new, i in enumerate(kept)])
    return [messages[i] for i in kept]


def is_silent(message: JsonObject) -> bool:
    """Whether this is an assistant's message without a text and a call."""
    return message.get("role") == "assistant" and not any(message.get(key) for key in _ANSWERING)


def convert_messages(
    messages: Messages, positions: list[int], convert: Callable[[JsonObject, Path], JsonObject]
) -> Messages:
    """Convert the messages at these positions; `convert` gets the message and its path.

    Returns the same list if there is none. The positions come from a comprehension: a call for each message would take
    longer than all else that a rewrite does.
    """
    if not positions:
        return messages
    messages = messages.copy()
    for i in positions:
        messages[i] = convert(messages[i], ("messages", i))
    return messages


def _find_parts(messages: Messages) -> list[int]:
    """The positions of messages whose content is a list of parts."""
    return [i for i, message in enumerate(messages) if "content" in message and type(message["content"]) is list]


def _is_refusal(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "refusal" and "refusal" in part


def extract_text(content: Any) -> str:
    """The text of a message's content, which is a string, a list of parts, or neither."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.keys() == {"type", "text"} and part["type"] == "text"


def _record_merge(message: JsonObject, position: int, first: int, ctx: Context) -> None:
    path: Path = ("messages", position)
    if position == first:
        if position:
            ctx.receipt.record_move(path, ("messages", 0), "the target takes one system message, first")
        return
    ctx.receipt.record_conversion(path, _MERGED, after=("messages", 0, "content"))
    for key in message.keys() - {"role", "content"}:
        ctx.receipt.record_drop((*path, key), _MERGED)


def _record_part_keys(content: Any, path: Path, ctx: Context) -> None:
    """Record the keys that parts of a text lose when the text becomes a part of a string, such as marks of caching."""
    for k, part in enumerate(content if isinstance(content, list) else ()):
        for key, value in part.items() if isinstance(part, dict) else ():
            if key not in ("type", "text") and value is not None:
                ctx.receipt.record_drop((*path, "content", k, key), _MERGED)


def _order_by_calls(messages: Messages) -> Iterable[int]:
    results: defaultdict[str | None, deque[int]] = defaultdict(deque)
    for i, message in enumerate(messages):
        if message.get("role") == "tool":
            results[message.get("tool_call_id")].append(i)
    taken: set[int] = set()
    for i, message in enumerate(messages):
        if i not in taken:  # a result that precedes its call, or has none, stays in its place
            yield i
        for call in message.get("tool_calls") or ():
            own = results[call.get("id")]
            while own and own[0] < i:
                own.popleft()
            if own:
                taken.add(own[0])
                yield own.popleft()
