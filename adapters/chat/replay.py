"""Decides in which form the reasoning of earlier turns goes back to a provider, and writes it.

Some providers refuse a request without it, some refuse one with it, and most ignore it:

    keep      as `reasoning_content`
    rename    as `reasoning`, and sealed blocks as `reasoning_details`
    drop      not at all

If the target's configuration does not decide, the provider's address does, then what is documented about the model,
then the dialect.
Sealed reasoning never goes to a model of another vendor (`seals`).
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Replay
from dragoman.adapters.changes import Weight
from dragoman.adapters.common.seals import is_foreign_seal
from dragoman.adapters.paths import Path

from .messages import convert_messages
from .reasoning import is_sealed, list_blocks

__all__ = ["replay_reasoning"]

_TEXTS = ("reasoning_content", "reasoning")
_SEALS = ("reasoning_signature", "reasoning_details")
_KEYS = frozenset((*_TEXTS, *_SEALS))

_HOSTS: dict[str, Replay] = {
    "api.cerebras.ai": "rename",  # refuses reasoning_content, reads reasoning: QwenLM/qwen-code#11045, vercel/ai#15042
    "openrouter.ai": "rename",  # OpenRouter, Reasoning tokens: reads reasoning and reasoning_details
    "api.groq.com": "drop",  # refuses reasoning_content, and reasoning for some models: vercel/ai#8057, janhq/jan#8136
    "api.mistral.ai": "drop",  # refuses unknown keys of messages: charmbracelet/crush#1590
    "api.openai.com": "drop",  # no such key in the reference
    "api.deepseek.com": "keep",  # DeepSeek, Thinking mode: 400 without it in a turn with tool calls
    "api.moonshot.ai": "keep",  # bytedance/deer-flow#3043: 400 without it in a turn with tool calls
    "api.moonshot.cn": "keep",
    "api.z.ai": "keep",  # Z.ai, Thinking mode: preserved thinking
    "open.bigmodel.cn": "keep",
}


def replay_reasoning(messages: list[JsonObject], ctx: Context, default: Replay) -> list[JsonObject]:
    """Write the reasoning of earlier turns as the target wants it; `default` is the dialect's choice."""

    target = ctx.target
    replay = target.reasoning_replay or _HOSTS.get(target.host) or target.facts.replay or default

    def convert(message: JsonObject, path: Path) -> JsonObject:
        message = _drop_foreign_seals(dict(message), path, ctx)
        _WRITERS[replay](message, path, ctx)
        return message

    return convert_messages(messages, [i for i, one in enumerate(messages) if not _KEYS.isdisjoint(one)], convert)


def _drop_foreign_seals(message: JsonObject, path: Path, ctx: Context) -> JsonObject:
    if any(is_foreign_seal(seal, ctx.target.facts.seals) for seal in _list_seals(message)):
        for name in [name for name in _SEALS if name in message]:
            del message[name]
            ctx.receipt.record_drop((*path, name), "only the vendor of the model that made it can read it")
    return message


def _list_seals(message: JsonObject) -> list[str]:
    seals = [block.get("data" if is_sealed(block) else "signature") for block in list_blocks(message)]
    return [str(seal) for seal in seals if seal]


def _keep(message: JsonObject, path: Path, ctx: Context) -> None:
    _rename(message, path, ctx, "reasoning", "reasoning_content")
    if "reasoning_details" in message and not _list_seals(message):
        del message["reasoning_details"]
        ctx.receipt.record_drop((*path, "reasoning_details"), "its text is in reasoning_content too", "form")


def _write_renamed(message: JsonObject, path: Path, ctx: Context) -> None:
    if message.get("reasoning_signature") and not message.get("reasoning_details"):
        message["reasoning_details"] = [{**block, "index": i} for i, block in enumerate(list_blocks(message))]
    if message.pop("reasoning_signature", None):
        after = (*path, "reasoning_details")
        ctx.receipt.record_conversion((*path, "reasoning_signature"), "signed texts are details", after=after)
    _rename(message, path, ctx, "reasoning_content", "reasoning")


def _rename(message: JsonObject, path: Path, ctx: Context, before: str, after: str) -> None:
    """Rename a key with a text; if the message has both, they are the same, and one is removed."""
    if before not in message:
        return
    text = message.pop(before)
    if text is None or message.get(after):
        ctx.receipt.record_drop((*path, before), f"it is empty, or the same as {after}", "form")
    else:
        message[after] = text
        ctx.receipt.record_rename((*path, before), (*path, after), "the provider's name for it")


def _drop(message: JsonObject, path: Path, ctx: Context) -> None:
    for name in [name for name in message if name in _KEYS]:
        weight: Weight = "loss" if message.pop(name) else "form"
        ctx.receipt.record_drop((*path, name), "the provider may refuse the reasoning of earlier turns", weight)


_WRITERS = {"keep": _keep, "rename": _write_renamed, "drop": _drop}
