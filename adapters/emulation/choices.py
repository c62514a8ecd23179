"""Emulates `n`: one call for each choice, all with the same request.

Each call is billed, and its prompt with it. If the client sets a seed, each call gets its own: equal seeds would give
equal choices.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.completions.requests import count_prompts
from dragoman.adapters.faults import Fault

from .interface import Emulation
from .joined_choices import ChoiceMerger, Renumber, join_choices

__all__ = ["CHOICES", "MOST_CHOICES"]

MOST_CHOICES = 8
"""How many calls make the choices of one request at most."""


def _find_obstacle(request: JsonObject) -> str | None:
    wanted, best_of = request["n"], request.get("best_of")
    if isinstance(wanted, int) and wanted < 1:
        return ""  # what the target says about the value is enough
    if not isinstance(wanted, int) or wanted > MOST_CHOICES:
        return f"dragoman makes at most {MOST_CHOICES} choices by several calls"
    if isinstance(best_of, int) and best_of > wanted:
        return "dragoman cannot choose the best of several answers"
    return None


def _split(ctx: Context) -> list[Context]:
    wanted = ctx.request["n"]
    reason = f"{wanted} calls make the {wanted} choices; each call is billed, its prompt included"
    ctx.receipt.record_emulation(("n",), reason)
    shared = {key: value for key, value in ctx.request.items() if key not in ("n", "best_of")}
    if isinstance(shared.get("seed"), int):
        ctx.receipt.record_emulation(("seed",), "each call gets a seed of its own: this one plus the choice's index")
    return [
        ctx._replace(request=_with_seed(shared, position), receipt=ctx.receipt.fork()) for position in range(wanted)
    ]


def _with_seed(request: JsonObject, position: int) -> JsonObject:
    seed = request.get("seed")
    return {**request, "seed": seed + position} if isinstance(seed, int) else request


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    return join_choices(replies, _renumber_for(ctx.request), ctx)


def _merge(ctx: Context, parts: int) -> ChoiceMerger:
    return ChoiceMerger(ctx, parts, _renumber_for(ctx.request))


def _renumber_for(request: JsonObject) -> Renumber:
    """A call has one choice for each prompt; the hub counts n choices for each prompt."""
    wanted, prompts = request["n"], count_prompts(request)

    def renumber(part: int, index: int) -> int:
        if not 0 <= index < prompts:
            text = f"the provider sent a choice {index}, but each call asks for one answer"
            raise Fault("upstream_invalid_response", text, ("n",), code="upstream_invalid_response")
        return int(index * wanted + part)

    return renumber


CHOICES = Emulation(_split, _join, _merge, _find_obstacle)
