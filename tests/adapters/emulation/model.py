"""A provider that generates texts and calls by its seed, with or without some capabilities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from dragoman.adapters.call import Call, JsonObject

__all__ = ["PROMPT_TOKENS", "Model", "read_choices"]

PROMPT_TOKENS = 7


@dataclass
class Model:
    """`texts` and `calls` are what it says, by the seed plus the number of the choice. It knows the fields that are not
    among its `lacks`; getting one that it lacks is an error. `cuts` says after how many characters its texts are
    split."""

    texts: list[str]
    calls: list[list[str]]
    lacks: frozenset[str] = frozenset()
    cuts: int = 3
    asked: list[JsonObject] = field(default_factory=list)

    def answer(self, call: Call) -> bytes:
        """The bytes of the reply, whole or streamed as the call asks."""
        body = call.body
        assert self.lacks.isdisjoint(body), f"a provider without {sorted(self.lacks)} was asked {body}"
        self.asked.append(body)
        prompts = len(body["prompt"]) if isinstance(body.get("prompt"), list) else 1
        choices = [self._choose(body, prompt, number) for prompt in range(prompts) for number in range(_count(body))]
        used = sum(len(choice["said"]) for choice in choices)
        usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": used, "total_tokens": PROMPT_TOKENS + used}
        if not body.get("stream"):
            return self._write_whole(body, choices, usage)
        chunks = [chunk for choice in choices for chunk in self._stream(body, choice)]
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks = [{**chunk, "usage": None} for chunk in chunks]
            chunks.append({"choices": [], "usage": usage})
        envelope = {"id": f"c{len(self.asked)}", "created": 1, "model": "m", "object": _kind(body, ".chunk")}
        events = [orjson.dumps({**envelope, **chunk}) for chunk in chunks]
        return b"".join(b"data: " + event + b"\n\n" for event in [*events, b"[DONE]"])

    def _choose(self, body: JsonObject, prompt: int, number: int) -> JsonObject:
        index, at = prompt * _count(body) + number, (body.get("seed") or 0) + number + 2 * prompt
        said, finish = self.texts[at % len(self.texts)], "length"
        calls = self.calls[at % len(self.calls)] if body.get("tools") else []
        stops = [body["stop"]] if isinstance(body.get("stop"), str) else body.get("stop") or []
        ends = [(found + len(stop), found) for stop in stops if (found := said.find(stop)) >= 0]
        if ends:
            return {"index": index, "said": said[: min(ends)[1]], "calls": [], "finish": "stop"}
        if calls:
            calls, finish = calls[:1] if body.get("parallel_tool_calls") is False else calls, "tool_calls"
        return {"index": index, "said": said, "calls": calls, "finish": finish}

    def _write_whole(self, body: JsonObject, choices: list[JsonObject], usage: JsonObject) -> bytes:
        made = []
        for one in choices:
            holder: JsonObject = {"text": one["said"], "logprobs": None}
            if "messages" in body:
                message: JsonObject = {"role": "assistant", "content": one["said"], "refusal": None}
                if one["calls"]:
                    message["tool_calls"] = [_call(i, name) for i, name in enumerate(one["calls"])]
                holder = {"message": message, "logprobs": None}
            made.append({"index": one["index"], **holder, "finish_reason": one["finish"]})
        envelope = {"id": f"c{len(self.asked)}", "object": _kind(body, ""), "created": 1, "model": "m"}
        return orjson.dumps({**envelope, "choices": made, "usage": usage})

    def _stream(self, body: JsonObject, one: JsonObject) -> list[JsonObject]:
        said, index, chat = one["said"], one["index"], "messages" in body
        pieces = [said[at : at + self.cuts] for at in range(0, len(said), self.cuts)]
        holders: list[JsonObject] = [{"delta": {"content": piece}} if chat else {"text": piece} for piece in pieces]
        if chat:
            holders.insert(0, {"delta": {"role": "assistant", "content": ""}})
        holders += [{"delta": {"tool_calls": [{"index": i, **_call(i, name)}]}} for i, name in enumerate(one["calls"])]
        last: JsonObject = {"delta": {}} if chat else {"text": ""}
        made = [{"index": index, **holder, "logprobs": None, "finish_reason": None} for holder in holders]
        made.append({"index": index, **last, "logprobs": None, "finish_reason": one["finish"]})
        return [{"choices": [choice]} for choice in made]


def _count(body: JsonObject) -> int:
    """The choices for each prompt."""
    return int(body.get("n") or 1)


def _kind(body: JsonObject, more: str) -> str:
    return f"chat.completion{more}" if "messages" in body else "text_completion"


def _call(number: int, name: str) -> JsonObject:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": '{"x": "#"}'}}


def read_choices(events: list[JsonObject]) -> dict[int, tuple[str, list[Any], str | None]]:
    """What the client got: of each choice its text, its calls and its finish reason."""
    found: dict[int, tuple[str, list[Any], str | None]] = {}
    for event in events:
        for choice in event["choices"]:
            text, calls, finish = found.get(choice["index"], ("", [], None))
            holder = choice.get("message") or choice.get("delta") or choice
            text += holder.get("content") or holder.get("text") or ""
            calls = calls + [{k: v for k, v in one.items() if k != "index"} for one in holder.get("tool_calls") or []]
            found[choice["index"]] = text, calls, choice["finish_reason"] or finish
    return found
