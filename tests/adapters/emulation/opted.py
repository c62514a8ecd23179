"""Exchanges with a target whose configuration asks for emulations, and the model behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Target
from dragoman.adapters.opt_ins import OptIns
from dragoman.adapters.pipeline import Attempt, Pipeline, PlannedCall, plan_target
from dragoman.adapters.routes import Route
from dragoman.adapters.sse import Event, Framer

__all__ = ["SCHEMA", "Said", "Scripted", "ask", "form", "join_message", "prepare", "read", "run"]

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


def form(schema: Any = SCHEMA, **more: Any) -> JsonObject:
    """A response_format with a schema."""
    return {"type": "json_schema", "json_schema": {"name": "trip", "schema": schema, **more}}


def ask(**more: Any) -> JsonObject:
    """A chat request."""
    return {"model": "m", "messages": [{"role": "user", "content": "x"}], **more}


@dataclass
class Said:
    """One answer of the model: a text, calls as (name, arguments), a finish reason."""

    text: str | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)
    finish: str | None = None
    more: JsonObject = field(default_factory=dict)

    @property
    def reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


class Scripted:
    """Gives the answers in turn; a function makes one of the request. Each call costs 7 and 5 tokens."""

    def __init__(self, *answers: Said | Callable[[JsonObject], Said], cuts: int = 5, usage: bool = True) -> None:
        self.answers = [*answers]
        self.asked: list[JsonObject] = []
        self.cuts = cuts
        self.usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12} if usage else None

    def answer(self, planned: PlannedCall) -> bytes:
        """The bytes of a reply, whole or streamed as the call asks."""
        body = planned.call.body
        self.asked.append(body)
        given = self.answers[min(len(self.asked), len(self.answers)) - 1]
        said = given if isinstance(given, Said) else given(body)
        top = {"id": f"c{len(self.asked)}", "created": 1, "model": "m"}
        calls = [
            {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(said.calls)
        ]
        if not body.get("stream"):
            message = {"role": "assistant", "content": said.text, **said.more}
            message |= {"tool_calls": calls} if calls else {}
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": said.reason}
            usage = {"usage": self.usage} if self.usage else {}
            return orjson.dumps({**top, "object": "chat.completion", "choices": [choice], **usage})
        deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in self._cut(said.text or "")]
        for i, call in enumerate(calls):
            function = call["function"]
            deltas.append({"tool_calls": [{**call, "index": i, "function": {**function, "arguments": ""}}]})
            pieces = self._cut(function["arguments"])
            deltas += [{"tool_calls": [{"index": i, "function": {"arguments": piece}}]} for piece in pieces]
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": said.reason})
        chunks: list[JsonObject] = [{"choices": [choice]} for choice in choices]
        if self.usage and (body.get("stream_options") or {}).get("include_usage"):
            chunks.append({"choices": [], "usage": self.usage})
        events = [orjson.dumps({**top, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
        return b"".join(b"data: " + event + b"\n\n" for event in [*events, b"[DONE]"])

    def _cut(self, text: str) -> list[str]:
        return [text[at : at + self.cuts] for at in range(0, len(text), self.cuts)]


def prepare(
    request: JsonObject,
    protocol: str = "chat",
    *,
    provider: str = "openai",
    model: str = "up",
    protocols: Sequence[str] = ("chat",),
    **target: Any,
) -> Attempt:
    """An attempt for a client of OpenAI. Unknown keywords are those of OptIns and Target."""
    opted = {key: target.pop(key) for key in [*target] if key in ("response_format", "tools", "usage", "hold_streams")}
    target["lacks"] = frozenset(target.get("lacks", ()))
    route = Route(dialects["openai"], protocol, dialects["openai"].served[protocol], "actual")
    counter = iter(range(1000))
    pipeline = Pipeline(
        route, Call("POST", "/", {}), clock=lambda: 1.0, new_id=lambda prefix: f"{prefix}_{next(counter)}"
    )
    pipeline.receive(orjson.dumps(request))
    plan = plan_target("p", dialects[provider], protocols, Target(model, opt_ins=OptIns(**opted), **target))
    return pipeline.prepare(plan)


def run(attempt: Attempt, model: Scripted, size: int = 200, cut: int | None = None) -> bytes:
    """Answer all calls, those that follow too; the reply to the call `cut` breaks off."""
    data, left = b"", [*attempt.calls]
    while left:
        planned = left.pop(0)
        number, given = planned.number, model.answer(planned)
        given = given[: len(given) // 2] if number == cut else given
        kind = "text/event-stream" if planned.stream else "application/json"
        outputs = [attempt.start_reply(number, 200, {"content-type": kind})]
        for at in range(0, len(given), size):
            if attempt.is_reading(number):
                outputs.append(attempt.feed(number, given[at : at + size]))
        if attempt.is_reading(number):
            outputs.append(attempt.close(number))
        for output in outputs:
            data += output.data
            left += output.calls
    return data


def read(data: bytes) -> list[JsonObject]:
    """The bodies of a whole reply or of the events of a stream."""
    if data.startswith(b"{"):
        return [orjson.loads(data)]
    framer = Framer()
    events = [one.data for one in [*framer.feed(data), *framer.close()] if isinstance(one, Event)]
    return [orjson.loads(one) for one in events if one != b"[DONE]"]


def join_message(events: list[JsonObject]) -> tuple[str, list[tuple[str, str]], str | None]:
    """The text, the calls and the finish reason of choice 0."""
    text, finish, calls = "", None, {}
    for event in events:
        for choice in event.get("choices", ()):
            held = choice.get("message") or choice.get("delta") or {}
            text += held.get("content") or ""
            for i, call in enumerate(held.get("tool_calls") or ()):
                function = call.get("function") or {}
                name, arguments = calls.get(call.get("index", i), ("", ""))
                calls[call.get("index", i)] = (
                    name + (function.get("name") or ""),
                    arguments + (function.get("arguments") or ""),
                )
            finish = choice["finish_reason"] or finish
    return text, [calls[index] for index in sorted(calls)], finish
