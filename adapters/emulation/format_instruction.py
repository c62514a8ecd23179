"""Emulates `response_format` by an instruction: the model gets the schema, and its answer is checked.

An answer that is not valid is asked for once more, with the reason. If it is still not valid, it is a fault under the
policy `replies: strict`, and a loss under the others. A stream is held until it is valid; if the configuration says
that it is not held, it is judged at its end.
"""

from __future__ import annotations

from typing import Any

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output
from dragoman.adapters.text_buffer import TextBuffer

from .choice_text import CHAT
from .instructions import add_instruction, ask_again, drop_stream, leave_out, make_correction
from .interface import Emulation
from .joined_choices import join_usage
from .json_formats import JsonFormat, read_format, strip_fence

__all__ = ["FORMAT_INSTRUCTION", "record_invalid"]

_FIELD = "response_format"
_CODE = "upstream_invalid_format"
_WISH = "Write nothing but the JSON: no other text, and no code fence around it."
_CUT_SHORT = frozenset({"length", "content_filter"})
_UNJUDGED = "the schema is recursive or too large, so the answer was not checked against it"


def _split(ctx: Context) -> list[Context]:
    wanted = read_format(ctx.request)
    if wanted is None:
        return leave_out(ctx, _FIELD, "dragoman emulates only the formats json_schema and json_object")
    ctx.receipt.record_emulation((_FIELD,), "an instruction asks for the format, and dragoman checks the answer")
    request = _instruct(ctx.request, wanted, ctx)
    return [ctx._replace(request=drop_stream(request) if ctx.target.opt_ins.hold_streams else request)]


def _instruct(request: JsonObject, wanted: JsonFormat, ctx: Context) -> JsonObject:
    rest = {key: value for key, value in request.items() if key != _FIELD}
    return {**rest, "messages": add_instruction(request["messages"], _describe(wanted), ctx.receipt)}


def _describe(wanted: JsonFormat) -> str:
    if wanted.schema is None:
        return f"Answer with one JSON object. {_WISH}"
    about = f" It is: {wanted.description}" if wanted.description else ""
    schema = orjson.dumps(wanted.schema).decode()
    return f"Answer with JSON that is valid against the JSON Schema below.{about} {_WISH}\n\nJSON Schema:\n{schema}"


def _follow_up(replies: list[JsonObject], ctx: Context) -> JsonObject | None:
    """Ask once more for an answer that is not valid, if it is the only one of its reply."""
    wanted, choices = read_format(ctx.request), replies[-1]["choices"]
    if wanted is None or len(replies) > 1 or len(choices) != 1:
        return None
    problem = _find_problem(choices[0], wanted)
    if problem is None:
        return None
    spent = (replies[0].get("usage") or {}).get("total_tokens", "an unknown number of")
    ctx.receipt.record_emulation((_FIELD,), f"the first answer was not valid, and cost {spent} tokens; 2 calls")
    request = drop_stream(_instruct(ctx.request, wanted, ctx._replace(receipt=ctx.receipt.fork())))
    return ask_again(request, CHAT.read(choices[0], CHAT.whole), make_correction(problem, _WISH))


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    reply, wanted = replies[-1], read_format(ctx.request)
    if wanted is None:
        return reply
    choices = [_clean_choice(choice, wanted, ctx) for choice in reply["choices"]]
    return join_usage(replies, {**reply, "choices": choices}, ctx)


def _clean_choice(choice: JsonObject, wanted: JsonFormat, ctx: Context) -> JsonObject:
    text = choice["message"].get("content")
    if _is_exempt(choice) or not isinstance(text, str):
        return choice
    stripped = strip_fence(text)
    if (problem := wanted.find_problem(stripped)) is not None:
        record_invalid(problem, ctx)
    elif not wanted.can_judge(stripped):
        ctx.receipt.record_drop((_FIELD,), _UNJUDGED)
    return choice if stripped == text else CHAT.replace(choice, CHAT.whole, stripped)


def _find_problem(choice: JsonObject, wanted: JsonFormat) -> str | None:
    if _is_exempt(choice):
        return None
    return wanted.find_problem(strip_fence(CHAT.read(choice, CHAT.whole)))


def _is_exempt(choice: JsonObject) -> bool:
    """Whether the choice ended before its text did, or says something else."""
    message = choice["message"]
    return choice["finish_reason"] in _CUT_SHORT or bool(message.get("refusal") or message.get("tool_calls"))


def record_invalid(problem: str, ctx: Context) -> None:
    """Record an answer that is not of the format. Raises Fault under the policy `strict`."""
    if ctx.target.policy.replies == "strict":
        text = f"the answer is not of the response_format that was asked for: {problem}"
        raise Fault("upstream_invalid_response", text, (_FIELD,), code=_CODE)
    ctx.receipt.record_drop((_FIELD,), f"the answer is not of this format: {problem}")


class _JudgedStream:
    """A StreamMerger that passes a stream on, and judges its choices at the end."""

    def __init__(self, ctx: Context, parts: int) -> None:
        self._ctx = ctx
        self._texts: dict[int, TextBuffer] = {}
        self._exempt: set[int] = set()

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return the outputs; the end becomes a fault if the policy says so."""
        for output in outputs:
            if isinstance(output, DeltaRun):
                if output.place == CHAT.place:
                    self._find_text(output.body["choices"][0]).add_fragments(output.texts)
            elif isinstance(output, Chunk):
                for choice in output.body["choices"]:
                    self._add_piece(choice)
        if not outputs or not isinstance(outputs[-1], End):
            return outputs
        try:
            self._judge()
        except Fault as fault:
            return [*outputs[:-1], fault.locate(self._ctx.receipt)]
        return outputs

    def _add_piece(self, choice: JsonObject) -> None:
        delta: dict[str, Any] = choice["delta"]
        self._find_text(choice).add(CHAT.read(choice, CHAT.piece))
        if delta.get("refusal") or delta.get("tool_calls") or choice["finish_reason"] in _CUT_SHORT:
            self._exempt.add(choice["index"])

    def _find_text(self, choice: JsonObject) -> TextBuffer:
        return self._texts.setdefault(choice["index"], TextBuffer())

    def _judge(self) -> None:
        wanted = read_format(self._ctx.request)
        judged = [buffer.text() for index, buffer in self._texts.items() if index not in self._exempt]
        if wanted is None:
            return
        for text in judged:
            if (problem := wanted.find_problem(text)) is not None:
                record_invalid(problem, self._ctx)
            elif not wanted.can_judge(text):
                self._ctx.receipt.record_drop((_FIELD,), _UNJUDGED)


FORMAT_INSTRUCTION = Emulation(_split, _join, _JudgedStream, is_exact=lambda request: False, follow_up=_follow_up)
