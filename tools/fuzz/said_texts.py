"""What an answer says, whatever its protocol, its dialect and its form: the texts of its choices, and how two differ.

A text may come more than once: a Responses stream has it in pieces, in the events that end it, and in the last
event. Each telling is collected by itself. White space does not count, because texts of blocks, parts and items are
joined by empty lines in protocols that have one text.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from dragoman.contract.json_types import JsonObject

__all__ = ["Said", "collect_texts", "compare_texts", "has_clear_indexes", "join_choices"]

Said = dict[str, set[str]]
"""The different tellings of each kind of text of one choice: `visible`, `reasoning` and `arguments`. None is empty."""

_KINDS = ("visible", "reasoning", "arguments")
_UNSURE = "unsure"  # a kind of text that is there if nobody can say what the provider means
_SPACE = re.compile(r"\s+")
_TAGS = re.compile(r"</?think>")
_THOUGHTS = {"reasoning", "thinking", "reasoning.text", "reasoning.summary", "summary_text", "reasoning_text"}
_INNER = ("text", "thinking", "summary", "content")
_CALLS = {"function": "arguments", "custom": "input"}
_DELTAS = {
    "response.output_text.delta": "visible",
    "response.refusal.delta": "visible",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "arguments",
}
_PIECES = {"visible": "text", "reasoning": "thinking", "arguments": "partial_json"}
_TELLINGS = {"visible": "text", "reasoning": "blocks", "arguments": "text"}
_OF_MESSAGES = frozenset({"message", "message_start", "content_block_start", "content_block_delta", "message_delta"})
_WITH_DELTA = ("content_block_delta", "message_delta")
_TOOL_USES = ("tool_use", "server_tool_use", "mcp_tool_use")
_WHOLE_TEXTS = {name.removesuffix("delta") + "done": kind for name, kind in _DELTAS.items()}
_PARTS = ("response.content_part.done", "response.reasoning_summary_part.done")
_WHOLE_KEYS = ("text", "refusal", "arguments", "input")
_ENDS = {"response.completed", "response.incomplete"}

_Tellings = dict[tuple[str, str], list[str]]
"""(kind, name of the telling) -> pieces."""


def has_clear_indexes(body: JsonObject) -> bool:
    """Whether the indexes tell choices apart: not if a whole reply gives one twice, or none."""
    indexes = [choice.get("index") for choice in _list_choices(body)]
    return all(isinstance(index, int) for index in indexes) and len(set(indexes)) == len(indexes)


def collect_texts(body: JsonObject, by_index: bool = True) -> list[Said]:
    """The texts of each choice of a whole reply, or of `{"events": [...]}`, in the order of their indexes, or of their
    positions in a whole reply. A response is one choice."""
    events = body.get("events")
    bodies = [one for one in events if isinstance(one, dict)] if isinstance(events, list) else [body]
    if any("choices" in one for one in bodies):
        return [_close(one) for one in _read_choices(bodies, by_index or events is not None)]
    if any(str(one.get("type")) in _OF_MESSAGES or "stop_reason" in one for one in bodies):
        return [_close(_read_messages(bodies))]
    return [_close(_read_response(bodies, is_stream=events is not None))]


def compare_texts(before: Said, after: Said, *, has_tags: bool = False) -> Iterator[tuple[str, str]]:
    """Each kind of text that is not the same, and what differs. `has_tags`: visible text may become reasoning."""
    if has_tags:
        before, after = _merge_reasoning(before), _merge_reasoning(after)
    for kind in _KINDS:
        given, got = before.get(kind, set()), after.get(kind, set())
        if got and ((len(given) > 1 and got <= given) or _UNSURE in before):
            continue  # the provider contradicts itself
        wrong = [text for text in got or {""} if not any(_is_same(text, one) for one in given or {""})]
        if wrong or _count(got) > _count(given) > 0:
            shown = [one[:60] for one in sorted(given)], [one[:60] for one in sorted(got)]
            yield kind, f"the {kind} text was {shown[0]}, and is {shown[1]}"


def join_choices(said: Sequence[Said]) -> Said:
    """The texts of several choices as those of one: some dialects number choices in another way."""
    joined: Said = {}
    for kind in _KINDS:
        most = None if kind == "arguments" else 1  # a call in each of two keys, or two tellings of one text
        texts = "".join(text for one in said for text in sorted(one.get(kind, ()))[:most])
        if texts:
            joined[kind] = {texts}
    return joined


def _is_same(one: str, other: str) -> bool:
    """Whether two texts are the same, or have the same characters: a refusal and calls may come in another order."""
    return one == other or (len(one) == len(other) and Counter(one) == Counter(other))


def _count(texts: set[str]) -> int:
    """How many of the texts have other characters than the rest."""
    return len({"".join(sorted(text)) for text in texts})


def _merge_reasoning(said: Said) -> Said:
    """Each telling of the visible text with each one of the reasoning, as one text without tags."""
    visible, reasoning = said.get("visible") or {""}, said.get("reasoning") or {""}
    merged = {_TAGS.sub("", text + thought) for text in visible for thought in reasoning} - {""}
    return {**({"visible": merged} if merged else {}), "arguments": said.get("arguments", set())}


def _close(tellings: _Tellings) -> Said:
    said: Said = defaultdict(set)
    for (kind, _), pieces in tellings.items():
        text = _SPACE.sub("", "".join(pieces))
        if text := text.replace("{}", "") if kind == "arguments" else text:  # Messages has no pieces of an empty input
            said[kind].add(text)
    return said


# Chat and completions


def _read_choices(bodies: Sequence[JsonObject], by_index: bool) -> list[_Tellings]:
    found: dict[Any, _Tellings] = {}
    for body in bodies:
        for position, choice in enumerate(_list_choices(body)):
            key = json.dumps((choice.get("index") or 0) if by_index else position)
            _read_choice(choice, found.setdefault(key, defaultdict(list)))
    return [found[key] for key in sorted(found, key=lambda key: (len(key), key))]


def _list_choices(body: JsonObject) -> list[JsonObject]:
    choices = body.get("choices")
    return [choice for choice in (choices if isinstance(choices, list) else ()) if isinstance(choice, dict)]


def _read_choice(choice: JsonObject, out: _Tellings) -> None:
    if isinstance(choice.get("text"), str):
        out["visible", "text"].append(choice["text"])
    holder = choice.get("delta") or choice.get("message")
    if isinstance(holder, dict):
        _read_message(holder, out)


def _read_message(holder: JsonObject, out: _Tellings) -> None:
    content = holder.get("content")
    for block in content if isinstance(content, list) else (content,):
        _read_block(block, out)
    if isinstance(holder.get("refusal"), str):
        out["visible", "text"].append(holder["refusal"])
    for key in ("reasoning_content", "reasoning"):
        if isinstance(holder.get(key), str):
            out["reasoning", key].append(holder[key])
    out["reasoning", "details"] += _list_inner_texts(holder.get("reasoning_details"))
    calls = holder.get("tool_calls")
    for call in calls if isinstance(calls, list) else (calls,):
        if isinstance(call, dict):
            _read_call(call, out)
    function = holder.get("function_call")
    if isinstance(function, dict):
        _read_call(
            {"function": function}, out, "function_call"
        )  # next to the same call as a tool call, in some servers


def _read_block(block: Any, out: _Tellings) -> None:
    if isinstance(block, str):
        out["visible", "text"].append(block)
    elif isinstance(block, dict) and str(block.get("type")) in ("text", "output_text", "refusal"):
        out["visible", "text"] += [str(text) for key in ("text", "refusal") if (text := block.get(key))]
    elif isinstance(block, dict) and str(block.get("type")) in _THOUGHTS:
        out["reasoning", "blocks"] += _list_inner_texts(block)


def _list_inner_texts(value: Any) -> list[str]:
    """The texts of reasoning blocks, at any depth."""
    if isinstance(value, list):
        return [text for one in value for text in ([one] if isinstance(one, str) else _list_inner_texts(one))]
    if not isinstance(value, dict):
        return []
    found = [value.get(key) for key in _INNER]
    return [text for one in found for text in ([one] if isinstance(one, str) else _list_inner_texts(one))]


def _read_call(call: JsonObject, out: _Tellings, telling: str = "text") -> None:
    for kind, key in _CALLS.items():
        said = call.get(kind)
        text = said.get(key) if isinstance(said, dict) else call.get(key) if "function" not in call else None
        if text is not None:
            out["arguments", telling].append(_encode(text))


def _encode(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


# Messages


def _read_messages(bodies: Sequence[JsonObject]) -> _Tellings:
    """The texts of a message, or of the events of one. The inputs of calls come with them, or in pieces."""
    out: _Tellings = defaultdict(list)
    for body in bodies:
        kind = str(body.get("type"))
        for block in _list_blocks(body, kind):
            _read_message_block(block, out)
        holder = body.get("delta") if kind in _WITH_DELTA else body
        if isinstance(holder, dict):
            for said, key in _PIECES.items():
                if isinstance(holder.get(key), str):
                    out[said, _TELLINGS[said]].append(holder[key])
            _read_explanation(holder, out)
    return out


def _list_blocks(body: JsonObject, kind: str) -> list[Any]:
    """The blocks of a message, or of one that begins, or the block that begins."""
    if kind == "content_block_start":
        return [body.get("content_block")]
    if kind in _WITH_DELTA:
        return []
    message = body.get("message") if kind == "message_start" else body
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else [content]


def _read_message_block(block: Any, out: _Tellings) -> None:
    if isinstance(block, dict) and not isinstance(block.get("type"), str) and "text" in block:
        block = {**block, "type": "text"}
    _read_block(block, out)
    if isinstance(block, dict) and block.get("type") in _TOOL_USES and block.get("input"):
        out["arguments", "text"].append(_encode(block["input"]))


def _read_explanation(holder: JsonObject, out: _Tellings) -> None:
    """Add the sentence of a refusal, which chat has as a text, unless it was a text already."""
    details = holder.get("stop_details")
    reason = details.get("explanation") if isinstance(details, dict) else None
    if isinstance(reason, str) and reason not in "".join(out["visible", "text"]):
        out["visible", "text"].append(reason)


# Responses


def _read_response(bodies: Sequence[JsonObject], *, is_stream: bool) -> _Tellings:
    out: _Tellings = defaultdict(list)
    items: list[Any] = []
    thoughts: dict[str, str] = {}  # position of an item -> the kind of reasoning that it had first
    ended: set[str] = set()  # ids and positions of items
    seen: set[str | None] = {None}
    lacks_places = False
    for body in bodies:
        if not is_stream:
            _read_output(body, "final", out)
            continue
        word = str(body.get("type"))
        kind = _DELTAS.get(word)
        item_id, place = _read_item_id(body), json.dumps(body.get("output_index"))
        lacks_places |= item_id is not None and type(body.get("output_index")) is not int
        is_other = item_id in ended or place in ended or (lacks_places and item_id not in seen)
        if word == "response.output_item.added" and item_id not in ended:
            ended.discard(place)
        elif ended and word != "response.output_item.done" and is_other:
            out[_UNSURE, "ended"] = ["what comes after the end of an item may be another one"]
        seen.add(item_id)
        if kind is not None and isinstance(body.get("delta"), str):
            if kind != "reasoning" or thoughts.setdefault(str(body.get("output_index")), word) == word:
                out[kind, "deltas"].append(body["delta"])
        elif word in _WHOLE_TEXTS:
            out[_WHOLE_TEXTS[word], "texts"] += [text for key in _WHOLE_KEYS if isinstance(text := body.get(key), str)]
        elif word in _PARTS and isinstance(body.get("part"), dict):
            kind = "reasoning" if str(body["part"].get("type")) in _THOUGHTS else "visible"
            out[kind, "parts"] += _list_part_texts([body["part"]])
        elif word == "response.output_item.done":
            _read_item(body.get("item"), "items", out)
            items.append(body.get("item"))
            ended |= {item_id or "", place}
        elif word in _ENDS and isinstance(body.get("response"), dict):
            _read_output(body["response"], "final", out)
            break  # nobody reads on
    if not all(isinstance(item, dict) and item.get("id") for item in items):
        out[_UNSURE, "items"] = ["an item without an id may be another one with an id"]
    return out


def _read_item_id(event: JsonObject) -> str | None:
    item = event.get("item")
    found = item.get("id") if isinstance(item, dict) else event.get("item_id")
    return found if isinstance(found, str) and found else None


def _read_output(response: JsonObject, telling: str, out: _Tellings) -> None:
    output = response.get("output")
    for item in output if isinstance(output, list) else ():
        _read_item(item, telling, out)


def _read_item(item: Any, telling: str, out: _Tellings) -> None:
    kind = item.get("type") if isinstance(item, dict) else None
    if kind == "message":
        out["visible", telling] += _list_part_texts(item.get("content"))
        for part in item["content"] if isinstance(item.get("content"), list) else ():
            _read_item(part, telling, out)  # a documented message of Databricks holds calls
    elif kind == "reasoning":
        out["reasoning", telling] += _list_part_texts(item.get("content")) or _list_part_texts(item.get("summary"))
    elif kind in ("function_call", "custom_tool_call"):
        text = item.get("arguments" if kind == "function_call" else "input")
        out["arguments", telling] += [] if text is None else [_encode(text)]


def _list_part_texts(parts: Any) -> list[str]:
    found = []
    for part in parts if isinstance(parts, list) else (parts,):
        found += [part.get("text"), part.get("refusal")] if isinstance(part, dict) else [part]
    return [text for text in found if isinstance(text, str)]
