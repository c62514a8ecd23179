"""Converts how much a model is to think, between Messages and chat.

Messages has a level of effort, and `thinking`: off, adaptive, or with a budget of tokens. Chat has a level of effort;
`thinking` is an extension there, which providers of Claude know.

    Messages                        chat
    output_config.effort            reasoning_effort; `minimal` is the level `low`, `none` switches thinking off
    thinking: enabled               the same for Claude; for other models a level of effort, if there is none
    thinking: disabled              the same for Claude; for other models dropped, a loss
    thinking: adaptive              dropped: it says how, not how much

Sources: anthropic 2.12.0, OutputConfigParam and ThinkingConfigParam; OpenAI Python SDK, reasoning_effort; Databricks
reasoning models guide.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path

from .parameters import find_holder, move_member
from .unused_keys import record_unused_keys

__all__ = ["set_chat_reasoning", "set_thinking"]

_EFFORT = "reasoning_effort"
_PATH: Path = ("output_config", "effort")
_LEVELS = ((16_384, "high"), (4_096, "medium"), (0, "low"))
"""The fewest tokens of a budget for each level of effort."""


def set_chat_reasoning(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    """Convert the settings of a Messages request to chat."""
    move_member(left, made, ("output_config", "effort"), _EFFORT, ctx)
    thinking = left.pop("thinking", None)
    if thinking is None:
        return
    kind = thinking["type"]
    if kind in ("enabled", "disabled") and _reads_thinking(ctx):
        record_unused_keys(thinking, ("type", "budget_tokens"), ("thinking",), ctx, "chat")
        made["thinking"] = {key: thinking[key] for key in ("type", "budget_tokens") if thinking.get(key) is not None}
        return
    record_unused_keys(thinking, ("type", "budget_tokens"), ("thinking",), ctx, "chat")
    budget = thinking.get("budget_tokens")
    if kind == "enabled" and _EFFORT not in made and isinstance(budget, int):
        made[_EFFORT] = next(level for least, level in _LEVELS if budget >= least)
        ctx.receipt.record_conversion(("thinking",), "a budget becomes a level of effort", "loss", after=(_EFFORT,))
        ctx.receipt.map_paths([(("thinking",), (_EFFORT,))])
    elif kind == "adaptive":
        ctx.receipt.record_drop(("thinking",), "the model decides when to think", "form")
    else:
        ctx.receipt.record_drop(("thinking",), "chat has no place for it")


def _reads_thinking(ctx: Context) -> bool:
    return ctx.target.facts.seals == "anthropic" or "thinking" in ctx.target.takes


def set_thinking(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    """Convert the settings of a chat request to Messages."""
    thinking = left.pop("thinking", None)
    if thinking is not None:
        made["thinking"] = thinking
    effort: Any = left.pop(_EFFORT, None)
    if effort is None:
        return
    if effort == "none":
        if thinking is None:
            made["thinking"] = {"type": "disabled"}
        ctx.receipt.record_conversion((_EFFORT,), "no effort: thinking is off", after=("thinking",))
        ctx.receipt.map_paths([((_EFFORT,), ("thinking",))])
        return
    find_holder(made, "output_config", _EFFORT, ctx)["effort"] = "low" if effort == "minimal" else effort
    if effort == "minimal":
        ctx.receipt.record_clamp((_EFFORT,), "Messages has no level below low")
    ctx.receipt.record_rename((_EFFORT,), _PATH, "the other protocol's place for it")
