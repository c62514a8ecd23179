"""Emulates `tools` by an instruction: it describes them, and the calls that the model writes become calls.

Earlier calls and results are written as text (`tool_text`). If a call cannot be read, or the one that was asked for is
missing, the model is asked once more. A call that cannot be read then stays text, which is a loss. A stream is held
until it is valid; if the configuration says that it is not held, the text and the calls come as the model writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.streams import Chunk, DeltaRun, Output
from dragoman.adapters.text_buffer import decode_fragment

from .choice_text import CHAT
from .instructions import add_instruction, ask_again, drop_stream, leave_out, make_correction
from .interface import Emulation, StreamMerger
from .joined_choices import join_usage
from .tool_text import describe_tools, write_turns
from .tool_text_parser import ToolTextParser, WrittenCall, WrittenPart

__all__ = ["TOOL_INSTRUCTION"]

_FIELDS = ("tools", "tool_choice", "parallel_tool_calls")
_WISH = "Write each call as a JSON object with a name and arguments, between its tags."
_UNREAD = "a call that the model wrote cannot be read, and stays text"
_FURTHER = "the model makes several calls at once, and one was asked for: the others are left out"


def _find_obstacle(request: JsonObject) -> str | None:
    if not all(tool.get("type") == "function" for tool in request.get("tools") or ()):
        return "dragoman describes only functions"
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") != "function":
        return "dragoman cannot describe this tool_choice"
    return None


def _split(ctx: Context) -> list[Context]:
    if (obstacle := _find_obstacle(ctx.request)) is not None:
        return leave_out(ctx, "tools", obstacle)
    reason = "an instruction describes the tools, and dragoman reads the calls in the answer"
    ctx.receipt.record_emulation(("tools",), reason)
    request = _instruct(ctx.request, ctx)
    return [ctx._replace(request=drop_stream(request) if ctx.target.opt_ins.hold_streams else request)]


def _instruct(request: JsonObject, ctx: Context) -> JsonObject:
    messages, places = write_turns(request["messages"])
    ctx.receipt.map_paths(places)
    if _may_call(request):
        one_call = request.get("parallel_tool_calls") is False
        text = describe_tools(request["tools"], request.get("tool_choice"), one_call=one_call)
        messages = add_instruction(messages, text, ctx.receipt)
    return {**{key: value for key, value in request.items() if key not in _FIELDS}, "messages": messages}


def _may_call(request: JsonObject) -> bool:
    return bool(request.get("tools")) and request.get("tool_choice") != "none"


def _list_names(request: JsonObject) -> frozenset[str]:
    return frozenset(tool["function"]["name"] for tool in request["tools"]) if _may_call(request) else frozenset()


def _follow_up(replies: list[JsonObject], ctx: Context) -> JsonObject | None:
    """Ask once more for calls that cannot be read, if the reply has one choice."""
    choices = replies[-1]["choices"]
    if len(replies) > 1 or len(choices) != 1 or choices[0]["finish_reason"] != "stop" or not _may_call(ctx.request):
        return None
    text = CHAT.read(choices[0], CHAT.whole)
    problem = _find_problem([*_parse(text, ctx.request)], ctx.request.get("tool_choice"))
    if problem is None or choices[0]["message"].get("refusal"):
        return None
    spent = (replies[0].get("usage") or {}).get("total_tokens", "an unknown number of")
    ctx.receipt.record_emulation(("tools",), f"the first answer was not valid, and cost {spent} tokens; 2 calls")
    request = drop_stream(_instruct(ctx.request, ctx._replace(receipt=ctx.receipt.fork())))
    return ask_again(request, text, make_correction(problem, _WISH))


def _find_problem(parts: list[WrittenPart], choice: Any) -> str | None:
    for part in parts:
        if part.problem is not None:
            return part.problem
    called = {part.call.name for part in parts if part.call is not None}
    if isinstance(choice, dict) and choice["function"]["name"] not in called:
        return f"you must call the function {choice['function']['name']}"
    return "you must call a function" if choice == "required" and not called else None


def _parse(text: str, request: JsonObject) -> Iterator[WrittenPart]:
    parser = ToolTextParser(_list_names(request))
    yield from parser.feed(text)
    yield from parser.close()


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    reply = replies[-1]
    if _find_obstacle(ctx.request) is None and _may_call(ctx.request):
        reply = {**reply, "choices": [_read_calls(choice, ctx) for choice in reply["choices"]]}
    return join_usage(replies, reply, ctx)


def _read_calls(choice: JsonObject, ctx: Context) -> JsonObject:
    text = CHAT.read(choice, CHAT.whole)
    writer = _CallWriter(ctx)
    deltas = [writer.write(part) for part in _parse(text, ctx.request)]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    if not calls:
        return choice
    said = "".join(delta.get(CHAT.key, "") for delta in deltas)
    whole = [{key: value for key, value in call.items() if key != "index"} for call in calls]
    message = {**choice["message"], CHAT.key: said or None, "tool_calls": whole}
    return {**choice, "message": message, "finish_reason": writer.convert_finish(choice["finish_reason"])}


class _CallWriter:
    """Writes the parts of one choice as deltas."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._is_single = ctx.request.get("parallel_tool_calls") is False
        self._count = 0

    def write(self, part: WrittenPart) -> JsonObject:
        """The delta for a part; it is empty if the part is left out."""
        if part.problem is not None:
            self._ctx.receipt.record_drop(("tools",), f"{_UNREAD}: {part.problem}")
        return {CHAT.key: part.text} if part.call is None else self._write_call(part.call)

    def convert_finish(self, reason: str | None) -> str | None:
        """The finish reason after these parts."""
        return "tool_calls" if reason == "stop" and self._count else reason

    def _write_call(self, call: WrittenCall) -> JsonObject:
        if self._is_single and self._count:
            self._ctx.receipt.record_drop(("parallel_tool_calls",), _FURTHER)
            return {}
        made = {"index": self._count, "id": self._ctx.new_id("call"), "type": "function", "function": call._asdict()}
        self._count += 1
        return {"tool_calls": [made]}


class _CallStream:
    """A StreamMerger that reads the calls as they are written."""

    def __init__(self, ctx: Context, parts: int) -> None:
        self._ctx = ctx
        self._names = _list_names(ctx.request)
        self._choices: dict[int, tuple[ToolTextParser, _CallWriter]] = {}

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return the outputs with calls instead of the text of calls."""
        if not self._names:
            return outputs
        return [made for output in outputs for made in self._convert(output)]

    def _convert(self, output: Output) -> Iterable[Output]:
        if isinstance(output, DeltaRun):
            if output.place != CHAT.place:
                return [output]
            parser, writer = self._find(output.body["choices"][0])
            parts = [*parser.feed("".join(map(decode_fragment, output.texts)))]
            return self._make_chunks(output.body, output.body["choices"][0], map(writer.write, parts))
        if not isinstance(output, Chunk):
            return [output]
        choices = output.body["choices"]
        made = [one for choice in choices for one in self._convert_choice(output.body, choice)]
        return made if choices else [output]

    def _find(self, choice: JsonObject) -> tuple[ToolTextParser, _CallWriter]:
        known = self._choices.get(choice["index"])
        if known is None:
            known = self._choices[choice["index"]] = ToolTextParser(self._names), _CallWriter(self._ctx)
        return known

    def _convert_choice(self, body: JsonObject, choice: JsonObject) -> list[Chunk]:
        parser, writer = self._find(choice)
        parts = [*parser.feed(CHAT.read(choice, CHAT.piece))]
        rest = {key: value for key, value in choice["delta"].items() if key != CHAT.key}
        finish = choice["finish_reason"]
        if finish is not None:
            parts += parser.close()
        deltas = [*map(writer.write, parts)]
        made = [*self._make_chunks(body, choice, [rest])] if finish is None else []
        made += self._make_chunks(body, choice, deltas)
        if finish is not None:
            last = {**choice, "delta": rest, "finish_reason": writer.convert_finish(finish)}
            made.append(Chunk({**body, "choices": [last]}))
        return made

    def _make_chunks(self, body: JsonObject, choice: JsonObject, deltas: Iterable[JsonObject]) -> list[Chunk]:
        empty = {**choice, "finish_reason": None}
        return [Chunk({**body, "choices": [{**empty, "delta": delta}]}) for delta in deltas if delta]


def _merge(ctx: Context, parts: int) -> StreamMerger:
    return _CallStream(ctx, parts)


TOOL_INSTRUCTION = Emulation(_split, _join, _merge, is_exact=lambda request: False, follow_up=_follow_up)
