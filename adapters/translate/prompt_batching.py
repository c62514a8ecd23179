"""Serves several prompts over chat: one call per prompt, whose replies are joined into one."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.usage import sum_usage
from dragoman.adapters.completions.requests import count_choices
from dragoman.adapters.emulation.interface import Emulation
from dragoman.adapters.faults import Fault

__all__ = ["BATCHING"]

_MOST = 2048  # prompts per request; the limit of embeddings


def _split(ctx: Context) -> list[Context]:
    """Split a request with several text prompts: one context per prompt. Raises Fault if there are too many."""
    prompts = ctx.request.get("prompt")
    if not (ctx.target.policy.emulate_completions and isinstance(prompts, list) and len(prompts) > 1):
        return [ctx]
    if not all(isinstance(prompt, str) for prompt in prompts):
        return [ctx]
    if len(prompts) > _MOST:
        text = f"a chat model serves completions here, and takes at most {_MOST} prompts in one request"
        raise Fault("unsupported_parameter", text, ("prompt",), code="unsupported_parameter")
    if ctx.request.get("stream"):
        ctx.receipt.record_conversion(
            ("stream",), "several prompts need several calls to a chat model, none of them streamed"
        )
    shared = {key: value for key, value in ctx.request.items() if key not in ("stream", "stream_options")}
    return [_make_part(ctx, shared, prompt, position) for position, prompt in enumerate(prompts)]


def _make_part(ctx: Context, shared: JsonObject, prompt: str, position: int) -> Context:
    receipt = ctx.receipt.fork()
    receipt.map_paths([(("prompt", position), ("prompt",))])
    return ctx._replace(request={**shared, "prompt": prompt}, receipt=receipt)


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    """Join completions replies in hub form: choices are numbered across prompts, token counts are added up.

    Alters the replies. Raises Fault if a reply has more choices than requested: their prompts would be ambiguous.
    """
    most = count_choices(ctx.request)
    for position, reply in enumerate(replies):
        for choice in reply["choices"]:
            if choice["index"] >= most:
                text = f"the provider sent a choice {choice['index']}, but {most} were requested"
                code = "upstream_invalid_response"
                raise Fault("upstream_invalid_response", text, ("prompt", position), code=code)
            choice["index"] += position * most
    joined = {**replies[0], "choices": [choice for reply in replies for choice in reply["choices"]]}
    joined.pop("usage", None)
    usages = [reply.get("usage") for reply in replies]
    return {**joined, "usage": sum_usage([usage for usage in usages if usage])} if all(usages) else joined


BATCHING = Emulation(_split, _join)
