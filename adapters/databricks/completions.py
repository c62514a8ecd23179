"""The databricks dialect of completions.

A choice's `index` counts the prompts of the request here, so that choices of one prompt share it; in the hub it counts
choices: n for each prompt, in the order of the prompts. In a stream such choices could not be told apart: a provider is
asked for a whole reply instead, a client gets one choice after the other. The documented reply has no model.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.answers import flat_reasoning_tokens, without_nulls, written_finish
from dragoman.adapters.chat.writer import RenderingWriter
from dragoman.adapters.common.parameters import without_stream_options
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.completions.called import completions_called
from dragoman.adapters.completions.reply import WORDS as FINISH_WORDS
from dragoman.adapters.completions.reply import read_text
from dragoman.adapters.completions.requests import check_request, choices_of, without_idle_best_of
from dragoman.adapters.dialect import Served
from dragoman.adapters.fit import HUB_COMPLETIONS, settle_unsupported
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import judge

from .endpoint import call_endpoint, name_endpoint, say_stream, settle_stream, without_model
from .faults import WORDS, error_event, write_fault
from .finish import FINISH
from .in_turn import InTurnWriter

__all__ = ["CALLED", "SERVED"]

READING = Reading(
    "databricks",
    words=WORDS,
    finish=FINISH,
    known=FINISH_WORDS,
)


def _rewrite(body: JsonObject, ctx: Context) -> None:
    without_model(body, ctx)
    without_stream_options(body, ctx)
    without_idle_best_of(body, ctx)
    _of_kind(
        body, "n", ctx, ctx.target.kind == "provisioned-throughput", "only provisioned throughput endpoints take it"
    )
    _of_kind(
        body, "error_behavior", ctx, ctx.target.kind != "provisioned-throughput", "only pay-per-token endpoints take it"
    )


def _make_call(body: JsonObject, ctx: Context) -> Call:
    if body.get("stream") and choices_of(body) > 1:
        ctx.receipt.converted(
            ("stream",), "the choices of one prompt cannot be told apart in a stream: asked for whole"
        )
        body["stream"] = False
    say_stream(body, ctx)
    return call_endpoint(body, ctx)


def _of_kind(body: JsonObject, name: str, ctx: Context, taken: bool, why: str) -> None:
    if name in body and not taken:
        settle_unsupported(body, (name,), ctx, why, HUB_COMPLETIONS)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    hub = read_text(reply, READING, ctx)
    _count_choices(hub.get("choices"), ctx)
    return hub


def _count_choices(choices: Any, ctx: Context) -> None:
    """Give each choice a number of its own where several share that of their prompt, whatever the policy for replies:
    a client could not tell them apart. Replies that nobody mended may hold anything."""
    if not isinstance(choices, list) or not all(_is_numbered(choice) for choice in choices):
        return
    if len({choice["index"] for choice in choices}) == len(choices):
        return
    wanted, seen = choices_of(ctx.request), Counter[int]()
    for choice in choices:
        prompt = choice["index"]
        choice["index"] = prompt * wanted + seen[prompt]
        seen[prompt] += 1
    ctx.receipt.converted(("choices",), "choices are counted, instead of prompts")


def _is_numbered(choice: Any) -> bool:
    return isinstance(choice, dict) and isinstance(choice.get("index"), int)


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_request(call.body, judge("databricks/completions.request", ctx.profile))
    body = dict(call.body)
    name_endpoint(body, call, ctx)
    settle_stream(body, ctx)
    return body


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, _written(reply, ctx))


def write_stream(ctx: Context) -> RenderingWriter:
    def render(chunk: JsonObject) -> JsonObject:
        return _written(chunk, ctx)

    if choices_of(ctx.request) > 1:
        return InTurnWriter(error_event, render)
    return RenderingWriter(error_event, render, "beside the finish")


def _written(body: JsonObject, ctx: Context) -> JsonObject:
    wanted = choices_of(ctx.request)
    if wanted > 1:
        ctx.receipt.converted(("choices",), "prompts are counted, instead of choices")
    choices = [_choice(choice, wanted, ("choices", i), ctx) for i, choice in enumerate(body["choices"])]
    body = {**body, "choices": choices}
    if ctx.profile == "documented" and body.pop("model", None) is not None:
        ctx.receipt.dropped(("model",), "the documented reply has no model: the request names it", "form")
    if body.get("usage"):
        body["usage"] = flat_reasoning_tokens(body["usage"])
    return body


def _choice(choice: JsonObject, wanted: int, path: Path, ctx: Context) -> JsonObject:
    choice = {**choice, "index": choice.get("index", 0) // wanted}
    written_finish(choice, {}, path, ctx)
    without_nulls(choice, "logprobs")
    return choice


SERVED = Served(read_request, write_reply, write_stream, write_fault)
_CALLED = completions_called(READING, rewrite=_rewrite, extras="drop", names_model=False, make_call=_make_call)
CALLED = replace(_CALLED, read_reply=read_reply)
