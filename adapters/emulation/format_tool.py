"""Emulates `response_format` by a tool: its parameters are the schema, the arguments of its call become the answer.

the client's tools         what the model must call
-------------------------  --------------------------------------------------------------------------
none, or it must use none  the tool of the format
it may use some            any tool: of the client, or that of the format, which is the final answer
it must use one            no tool of the format: a call has no text, and so the format does not matter
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman.adapters.call import Context, JsonObject

from .format_tool_stream import NO_ANSWER, SECOND_ANSWER, FormatToolStream, finish_choice
from .instructions import leave_out
from .interface import Emulation, StreamMerger
from .json_formats import JsonFormat, read_format

__all__ = ["FORMAT_TOOL"]

_FIELD = "response_format"
_NAME = "final_answer"
_DESCRIPTION = "Gives the final answer to the user. Its arguments are the answer."
_AUTO = (None, "auto")


class _Plan(NamedTuple):
    """The format as a tool. `choice` is the `tool_choice`; `holds_tools`: the client has tools of its own."""

    name: str
    tool: JsonObject
    choice: Any
    position: int


def _find_obstacle(request: JsonObject, wanted: JsonFormat | None) -> str | None:
    if wanted is None:
        return "dragoman emulates only the formats json_schema and json_object"
    if wanted.schema is not None and not (isinstance(wanted.schema, dict) and wanted.schema.get("type") == "object"):
        return "the parameters of a tool are an object, and the schema is not one of objects"
    if request.get("logprobs"):
        return "the arguments of a call have no log probabilities"
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return "dragoman cannot add the tool of the format to allowed_tools"
    return None


def _plan(request: JsonObject) -> _Plan | None:
    """None if the format has no tool."""
    wanted, choice = read_format(request), request.get("tool_choice")
    if wanted is None or _find_obstacle(request, wanted) is not None or _must_call(request):
        return None
    tools = request.get("tools") or []
    name = _NAME
    while any(_read_name(tool) == name for tool in tools):
        name += "_"
    function: JsonObject = {"name": name, "description": wanted.description or _DESCRIPTION}
    function["parameters"] = {"type": "object"} if wanted.schema is None else wanted.schema
    if wanted.strict:
        function["strict"] = True
    forced: Any = {"type": "function", "function": {"name": name}}
    may_use_tools = bool(tools) and choice in _AUTO
    return _Plan(name, {"type": "function", "function": function}, "required" if may_use_tools else forced, len(tools))


def _must_call(request: JsonObject) -> bool:
    choice = request.get("tool_choice")
    return bool(request.get("tools")) and choice not in (*_AUTO, "none")


def _read_name(tool: JsonObject) -> Any:
    return (tool.get("function") or tool.get("custom") or {}).get("name")


def _split(ctx: Context) -> list[Context]:
    request = {key: value for key, value in ctx.request.items() if key != _FIELD}
    if (obstacle := _find_obstacle(ctx.request, read_format(ctx.request))) is not None:
        return leave_out(ctx, _FIELD, obstacle)
    plan = _plan(ctx.request)
    if plan is None:
        ctx.receipt.record_drop((_FIELD,), "the model must call a tool, and a call has no text", "form")
        return [ctx._replace(request=request)]
    place = ("tools", plan.position)
    reason = f"a tool has the schema as its parameters, and the arguments of its call are the answer: {plan.name}"
    ctx.receipt.record_emulation((_FIELD,), reason, place)
    schema = ((_FIELD, "json_schema", "schema"), (*place, "function", "parameters"))
    added = [] if plan.position else [((_FIELD,), ("tools",))]
    ctx.receipt.map_paths([schema, ((_FIELD,), place), ((_FIELD,), ("tool_choice",)), *added])
    tools = [*(request.get("tools") or []), plan.tool]
    return [ctx._replace(request={**request, "tools": tools, "tool_choice": plan.choice})]


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    (reply,), plan = replies, _plan(ctx.request)
    if plan is None:
        return reply
    return {**reply, "choices": [_take_answer(choice, plan.name, ctx) for choice in reply["choices"]]}


def _take_answer(choice: JsonObject, name: str, ctx: Context) -> JsonObject:
    """The choice with the arguments of the format's call as its text."""
    message: JsonObject = choice["message"]
    calls = message.get("tool_calls") or []
    answers = [call["function"]["arguments"] for call in calls if _is_answer(call, name)]
    if not answers:
        return choice
    if message.get("content"):
        ctx.receipt.record_drop(("choices", choice["index"], "message", "content"), NO_ANSWER)
    if len(answers) > 1:
        ctx.receipt.record_drop(("choices", choice["index"], "message", "tool_calls"), SECOND_ANSWER)
    own = [call for call in calls if not _is_answer(call, name)]
    said = {key: value for key, value in message.items() if key != "tool_calls"} | {"content": answers[0]}
    return finish_choice({**choice, "message": {**said, "tool_calls": own} if own else said}, has_calls=bool(own))


def _is_answer(call: JsonObject, name: str) -> bool:
    return (call.get("function") or {}).get("name") == name


def _merge(ctx: Context, parts: int) -> StreamMerger:
    plan = _plan(ctx.request)
    return FormatToolStream(ctx, None if plan is None else plan.name)


FORMAT_TOOL = Emulation(_split, _join, _merge, is_exact=lambda request: False)
