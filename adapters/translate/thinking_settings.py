"""Converts how much a model is to think, between Messages and chat.

Messages has a level of effort, and `thinking`: off, adaptive, or with a budget of tokens. Chat has a level of effort;
`thinking` is an extension there, which providers of Claude know.

    Messages                        chat
    output_config.effort            reasoning_effort; `minimal` is the level `low`, `none` switches thinking off
    thinking: enabled               the same for Claude; for other models a level of effort, if there is none
    thinking: disabled              the same for Claude; for other models dropped, a loss
    thinking: adaptive              dropped: it says how, not how much

An effort is a signal in Messages: providers of chat that have no such parameter go without it. What is documented about
a model decides what `reasoning_effort` becomes for it: an effort with adaptive thinking, or a
budget. If nothing is, it becomes an effort.

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
_BUDGETS = {"minimal": 1_024, "low": 1_024, "medium": 4_096, "high": 16_384, "xhigh": 32_768, "max": 32_768}
"""The budget of each level of effort, for models that have only budgets."""
_LEAST_BUDGET = 1_024
_OBSTACLES = ("temperature", "top_k")
"""Parameters that exclude thinking, unless they are 1. Source: Anthropic, Extended thinking, feature compatibility."""
_FORCED = ("any", "tool")  # choices with which a tool must be called


def set_chat_reasoning(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    """Convert the settings of a Messages request to chat."""
    move_member(left, made, ("output_config", "effort"), _EFFORT, ctx)
    thinking = left.pop("thinking", None)
    if thinking is not None:
        _set_chat_thinking(thinking, made, ctx)
    if _EFFORT in made:
        ctx.receipt.mark_advisory((_EFFORT,))


def _set_chat_thinking(thinking: JsonObject, made: JsonObject, ctx: Context) -> None:
    kind = thinking["type"]
    if kind in ("enabled", "disabled") and _reads_thinking(ctx):
        record_unused_keys(thinking, ("type", "budget_tokens"), ("thinking",), ctx, "chat")
        made["thinking"] = {key: thinking[key] for key in ("type", "budget_tokens") if thinking.get(key) is not None}
        return
    record_unused_keys(thinking, ("type", "budget_tokens"), ("thinking",), ctx, "chat")
    budget = thinking.get("budget_tokens")
    if kind == "enabled" and isinstance(budget, int) and _EFFORT not in made:
        made[_EFFORT] = next(level for least, level in _LEVELS if budget >= least)
        ctx.receipt.record_conversion(("thinking",), "a budget becomes a level of effort", "loss", after=(_EFFORT,))
        ctx.receipt.map_paths([(("thinking",), (_EFFORT,))])
    elif kind == "adaptive":
        ctx.receipt.record_drop(("thinking",), "the model decides when to think", "form")
    else:
        ctx.receipt.record_drop(("thinking",), "chat has no place for it")


def _reads_thinking(ctx: Context) -> bool:
    return ctx.target.facts.is_claude or "thinking" in ctx.target.takes


def set_thinking(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    """Convert the settings of a chat request to Messages. `made` has the limit on tokens and the choice among tools."""
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
    elif thinking is None and ctx.target.facts.thinking == "budget":
        _set_budget(effort, made, ctx)
    else:
        _set_effort(effort, made, ctx)


def _set_effort(effort: str, made: JsonObject, ctx: Context) -> None:
    find_holder(made, "output_config", _EFFORT, ctx)["effort"] = "low" if effort == "minimal" else effort
    if effort == "minimal":
        ctx.receipt.record_clamp((_EFFORT,), "Messages has no level below low")
    ctx.receipt.record_rename((_EFFORT,), _PATH, "the other protocol's place for it")
    if "thinking" in made or ctx.target.facts.thinking != "adaptive":
        return
    source = ctx.target.facts.describe("thinking")
    if (obstacle := _find_obstacle(made)) is not None:
        ctx.receipt.record_conversion((_EFFORT,), f"the model cannot think with this {obstacle} ({source})", "loss")
        return
    made["thinking"] = {"type": "adaptive"}
    ctx.receipt.record_fill(("thinking",), f"the model thinks if it is asked to: {source}")


def _find_obstacle(made: JsonObject) -> str | None:
    """The parameter of a Messages request that excludes thinking; None if there is none."""
    if (made.get("tool_choice") or {}).get("type") in _FORCED:
        return "tool_choice"
    return next((name for name in _OBSTACLES if made.get(name) not in (None, 1)), None)


def _set_budget(effort: str, made: JsonObject, ctx: Context) -> None:
    """Turn a level of effort into a budget, which must be less than the limit on tokens."""
    limit = made.get("max_tokens")
    budget = _BUDGETS[effort] if limit is None else min(_BUDGETS[effort], limit - 1)
    obstacle = _find_obstacle(made) or ("max_tokens" if budget < _LEAST_BUDGET else None)
    if obstacle is not None:
        source = ctx.target.facts.describe("thinking")
        ctx.receipt.record_drop((_EFFORT,), f"the model cannot think with this {obstacle} ({source})")
        return
    made["thinking"] = {"type": "enabled", "budget_tokens": budget}
    ctx.receipt.record_conversion((_EFFORT,), "a level of effort becomes a budget", after=("thinking",))
    ctx.receipt.map_paths([((_EFFORT,), ("thinking",))])
