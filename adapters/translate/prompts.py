"""Serves completions over chat, in hub form: the prompt becomes a user message, the answer becomes the text.

A chat model answers a prompt instead of continuing it. This is a loss, so it happens only under the policy
`emulate_completions`. One text prompt becomes one message; several need several calls (`prompt_batching.py`).
Parameters that chat lacks follow the policy for unsupported fields (`adapters/fit.py`).
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.parameters import copy_request
from dragoman.adapters.completions.requests import drop_idle_best_of
from dragoman.adapters.extras import resolve_extra
from dragoman.adapters.faults import Fault
from dragoman.adapters.fit import drop_or_reject
from dragoman.adapters.paths import Path
from dragoman.adapters.request_properties import HUB_COMPLETIONS
from dragoman.schemas import load

from .unused_keys import carry_reply_keys, record_unused_keys

__all__ = ["prompt_to_chat_request", "to_text_choice", "to_text_envelope", "to_text_reply"]

_SAME = frozenset(
    {
        "model",
        "max_tokens",
        "temperature",
        "top_p",
        "n",
        "stream",
        "stream_options",
        "stop",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "seed",
        "user",
        "top_k",
        "min_p",
        "repetition_penalty",
        "stop_token_ids",
        "ignore_eos",
        "skip_special_tokens",
        "include_stop_str_in_output",
        "client_request_id",
        "usage_context",
        "extra_params",
    }
)
_ENVELOPE = ("id", "created", "model", "system_fingerprint", "usage")
_TEXTS = ("role", "content", "refusal")
_CHOICE_KEYS = ("index", "message", "delta", "finish_reason", "native_finish_reason")
_HUBS = ("hub/chat.reply", "hub/completions.reply")
_COMPLETIONS = "completions"
_MESSAGE = ("messages", 0, "content")
_FINISH = {"tool_calls": "stop", "function_call": "stop"}  # finish reasons that completions do not have


def prompt_to_chat_request(request: JsonObject, ctx: Context) -> JsonObject:
    """Translate a completions request to chat. Raises Fault, with the path as the client wrote it."""
    if not ctx.target.policy.emulate_completions:
        text = "the model's provider does not serve completions; the policy emulate_completions lets chat serve them"
        raise Fault("unsupported_parameter", text, ("model",), code="unsupported_protocol")
    body = copy_request(request, ctx, HUB_COMPLETIONS)
    path, prompt = _only_prompt(body.pop("prompt", None))
    drop_idle_best_of(body, ctx)
    known = load(HUB_COMPLETIONS)["properties"]
    for name in [name for name in body if name not in _SAME]:
        if name in known:
            drop_or_reject(body, (name,), ctx, "a chat model serves the request, and chat lacks it", HUB_COMPLETIONS)
        else:
            resolve_extra(body, (name,), ctx, hub=HUB_COMPLETIONS)
    body["messages"] = [{"role": "user", "content": prompt}]
    why = "a chat model answers the prompt instead of continuing it"
    ctx.receipt.record_conversion(path, why, "loss", _MESSAGE, "emulate_completions")
    ctx.receipt.map_paths([(path, _MESSAGE), (path, ("messages",))])
    return body


def _only_prompt(prompt: object) -> tuple[Path, str]:
    """The path and the text of the one prompt. Raises Fault unless there is exactly one, of text."""
    if isinstance(prompt, str):
        return ("prompt",), prompt
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        return ("prompt", 0), prompt[0]
    what = "no prompt" if prompt is None else "a prompt of tokens"
    text = f"{what} cannot be served: a chat model serves completions here, and takes prompts of text"
    raise Fault("unsupported_parameter", text, ("prompt",), code="unsupported_parameter")


def to_text_reply(reply: JsonObject, request: JsonObject, ctx: Context) -> JsonObject:
    """Translate a chat reply to completions."""
    choices = [to_text_choice(choice, "message", ctx, i) for i, choice in enumerate(reply["choices"])]
    ctx.receipt.record_conversion(("choices",), "the content of a message becomes the text")
    return {**to_text_envelope(reply, ctx), "choices": choices}


def to_text_envelope(reply: JsonObject, ctx: Context) -> JsonObject:
    """What a chat reply or chunk says outside of the choices, in completions."""
    kept = {key: reply[key] for key in _ENVELOPE if key in reply}
    return {**kept, **carry_reply_keys(reply, kept, _HUBS, ("choices", "object"), ctx), "object": "text_completion"}


def to_text_choice(choice: JsonObject, part: str, ctx: Context, position: int | None = None) -> JsonObject:
    """Translate a choice of a chat reply or chunk to completions; `part` is 'message' or 'delta'. `position` is the
    choice's place in a whole reply."""
    said, finish, index = choice[part], choice.get("finish_reason"), choice["index"]
    path: Path = ("choices", index if position is None else position, part)
    record_unused_keys(choice, _CHOICE_KEYS, path[:2], ctx, _COMPLETIONS)
    record_unused_keys(said, _TEXTS, path, ctx, _COMPLETIONS)
    if said.get("refusal"):
        ctx.receipt.record_conversion((*path, "refusal"), "the refusal becomes part of the text")
    if finish in _FINISH:
        ctx.receipt.record_conversion((*path[:2], "finish_reason"), f"{finish!r} is {_FINISH[finish]!r} in completions")
    return {
        "index": index,
        "text": (said.get("content") or "") + (said.get("refusal") or ""),
        "logprobs": None,
        "finish_reason": finish and _FINISH.get(finish, finish),
    }
