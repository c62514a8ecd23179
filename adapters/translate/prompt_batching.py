"""Several prompts over chat: one call for each, whose replies are joined as if there had been one."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.usage import sum_usage
from dragoman.adapters.completions.requests import count_choices
from dragoman.adapters.dialect import Batching
from dragoman.adapters.faults import Fault

__all__ = ["BATCHING"]

_MOST = 2048  # prompts in one request; what embeddings take


def _split(ctx: Context) -> list[Context]:
    """One context for each prompt of text. Raises Fault for too many of them."""
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
            ("stream",), "several prompts are several calls to a chat model: each is asked for whole"
        )
    shared = {key: value for key, value in ctx.request.items() if key not in ("stream", "stream_options")}
    return [_make_part(ctx, shared, prompt, position) for position, prompt in enumerate(prompts)]


def _make_part(ctx: Context, shared: JsonObject, prompt: str, position: int) -> Context:
    receipt = ctx.receipt.fork()
    receipt.map_paths([(("prompt", position), ("prompt",))])
    return ctx._replace(request={**shared, "prompt": prompt}, receipt=receipt)


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    """Completions replies in hub form as one: choices count on from prompt to prompt, tokens are added up. Alters them.

    Raises Fault if a reply has more choices than were asked for: their prompts cannot be known.
    """
    most = count_choices(ctx.request)
    for position, reply in enumerate(replies):
        for choice in reply["choices"]:
            if choice["index"] >= most:
                text = f"the provider sent a choice {choice['index']}, where {most} were asked for"
                code = "upstream_invalid_response"
                raise Fault("upstream_invalid_response", text, ("prompt", position), code=code)
            choice["index"] += position * most
    joined = {**replies[0], "choices": [choice for reply in replies for choice in reply["choices"]]}
    joined.pop("usage", None)
    usages = [reply.get("usage") for reply in replies]
    return {**joined, "usage": sum_usage([usage for usage in usages if usage])} if all(usages) else joined


BATCHING = Batching(_split, _join)
