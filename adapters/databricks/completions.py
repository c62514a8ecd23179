"""The databricks dialect of completions.

In this dialect a choice's `index` counts prompts, so all choices of a prompt share it. In the hub it counts choices: n
for each prompt, in the order of the prompts. In a stream, choices that share an index could not be separated. So a
provider is asked for a whole reply instead, and a client gets one choice after the other. The documented reply has no
model.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.reply_rewrites import drop_nulls, flatten_reasoning_tokens, write_finish_reason
from dragoman.adapters.chat.writer import RenderingStreamWriter
from dragoman.adapters.common.parameters import drop_stream_options, fill_stream_flag
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.completions.called import completions_called
from dragoman.adapters.completions.reply import FINISH_REASONS, read_completions_reply
from dragoman.adapters.completions.requests import check_request, count_choices, drop_idle_best_of
from dragoman.adapters.dialect import Served
from dragoman.adapters.fit import drop_or_reject
from dragoman.adapters.paths import Path
from dragoman.adapters.request_properties import HUB_COMPLETIONS
from dragoman.adapters.validation import load_validator

from .choice_serializer import ChoiceSerializer
from .endpoint import fill_stream_defaults, make_invocation, remove_model, set_model_from_path
from .faults import WORDS, error_event, write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("databricks", words=WORDS, known=FINISH_REASONS)


def _rewrite(body: JsonObject, ctx: Context) -> None:
    remove_model(body, ctx)
    drop_stream_options(body, ctx)
    drop_idle_best_of(body, ctx)
    _drop_if_unsupported(
        body, "n", ctx, ctx.target.kind == "provisioned-throughput", "only provisioned throughput endpoints accept it"
    )
    _drop_if_unsupported(
        body,
        "error_behavior",
        ctx,
        ctx.target.kind != "provisioned-throughput",
        "only pay-per-token endpoints accept it",
    )


def _make_call(body: JsonObject, ctx: Context, _has_extras: bool) -> Call:
    if body.get("stream") and count_choices(body) > 1:
        ctx.receipt.record_conversion(
            ("stream",), "the choices of one prompt share an index in a stream, so the reply is not streamed"
        )
        body["stream"] = False
    fill_stream_flag(body, ctx)
    return make_invocation(body, ctx, "/completions")


def _drop_if_unsupported(body: JsonObject, name: str, ctx: Context, supported: bool, why: str) -> None:
    if name in body and not supported and name not in ctx.target.takes:
        drop_or_reject(body, (name,), ctx, why, HUB_COMPLETIONS)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    hub = read_completions_reply(reply, REPLY_RULES, ctx)
    _renumber_choices(hub.get("choices"), ctx)
    return hub


def _renumber_choices(choices: Any, ctx: Context) -> None:
    """Give each choice its own index if several share the index of their prompt.

    This happens under every policy for replies, because a client could not separate such choices. Replies that were
    not normalized may hold anything.
    """
    if not isinstance(choices, list) or not all(_is_numbered(choice) for choice in choices):
        return
    if len({choice["index"] for choice in choices}) == len(choices):
        return
    wanted, seen = count_choices(ctx.request), Counter[int]()
    for position, choice in enumerate(choices):
        prompt = choice["index"]
        choice["index"] = prompt * wanted + seen[prompt]
        seen[prompt] += 1
        ctx.receipt.record_conversion(("choices", position, "index"), "the hub counts choices instead of prompts")


def _is_numbered(choice: Any) -> bool:
    return isinstance(choice, dict) and isinstance(choice.get("index"), int)


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_request(call.body, load_validator("databricks/completions.request", ctx.profile))
    body = dict(call.body)
    set_model_from_path(body, call, ctx)
    fill_stream_defaults(body, ctx)
    return body


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, _write_choices(reply, ctx))


def write_stream(ctx: Context) -> RenderingStreamWriter:
    def render(chunk: JsonObject) -> JsonObject:
        return _write_choices(chunk, ctx)

    if count_choices(ctx.request) > 1:
        return ChoiceSerializer(error_event, render, ctx.receipt)
    return RenderingStreamWriter(error_event, render, "with the finish", ctx.receipt)


def _write_choices(body: JsonObject, ctx: Context) -> JsonObject:
    wanted = count_choices(ctx.request)
    choices = [_write_choice(choice, wanted, ("choices", i), ctx) for i, choice in enumerate(body["choices"])]
    body = {**body, "choices": choices}
    if ctx.profile == "documented" and body.pop("model", None) is not None:
        ctx.receipt.record_drop(("model",), "the documented reply has no model: the request names it", "form")
    if body.get("usage"):
        body["usage"] = flatten_reasoning_tokens(body["usage"], ctx)
    return body


def _write_choice(choice: JsonObject, wanted: int, path: Path, ctx: Context) -> JsonObject:
    given = choice.get("index")
    if not isinstance(given, int):
        given = int(path[1])
        ctx.receipt.record_fill((*path, "index"), "the provider gave none")
    elif given // wanted != given:
        ctx.receipt.record_conversion((*path, "index"), "the dialect counts prompts instead of choices")
    choice = {**choice, "index": given // wanted}
    write_finish_reason(choice, {}, path, ctx)
    drop_nulls(choice, "logprobs")
    return choice


SERVED = Served(read_request, write_reply, write_stream, write_fault)
_CALLED = completions_called(REPLY_RULES, rewrite=_rewrite, extras="drop", names_model=False, make_call=_make_call)
CALLED = replace(_CALLED, read_reply=read_reply)
