"""Emulates `stop`: the text is cut at the first stop string, and the choice has the finish reason `stop`.

Reasoning and the arguments of tool calls are not cut: providers that have the field do not look for stop strings there.
What follows a stop string would not have been generated, so tool calls after it are dropped. When all choices of a
stream are complete, the stream ends, so that the provider's call can be cancelled; its usage is an estimate then.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.completions.requests import count_choices, count_prompts

from .choice_text import CHAT, COMPLETIONS, ChoiceText, count_tokens, split_logprobs
from .interface import Emulation
from .stop_cutter import StopCutter
from .stop_scanner import StopScanner
from .texts import walk_texts

__all__ = ["LONGEST_STOP", "MOST_STOPS", "STOP_SEQUENCES", "check_stops", "count_prompt_bytes"]

MOST_STOPS = 16
"""How many stop strings dragoman looks for at most."""

LONGEST_STOP = 1000
"""How many characters a stop string may have."""

_KEEPS_STOP = "include_stop_str_in_output"
_TEXTS = ("messages", "prompt", "suffix")


def _find_obstacle(request: JsonObject) -> str | None:
    if request.get("echo"):
        return "dragoman does not cut an answer that repeats its prompt"
    return check_stops(_list_stops(request))


def check_stops(stops: tuple[str, ...]) -> str | None:
    """Why dragoman cannot look for these stop strings: an empty text if there are none, None if it can."""
    if len(stops) > MOST_STOPS or any(len(stop) > LONGEST_STOP for stop in stops):
        return f"dragoman looks for at most {MOST_STOPS} stop strings of at most {LONGEST_STOP} characters"
    return None if stops else ""


def _split(ctx: Context) -> list[Context]:
    for key in ("stop", _KEEPS_STOP) if _KEEPS_STOP in ctx.request else ("stop",):
        ctx.receipt.record_emulation((key,), "dragoman cuts the text at the first stop string")
    request = {key: value for key, value in ctx.request.items() if key not in ("stop", _KEEPS_STOP)}
    return [ctx._replace(request=request)]


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    shape, stops = _find_shape(ctx.request), _list_stops(ctx.request)
    keeps_stop = ctx.request.get(_KEEPS_STOP) is True
    (reply,) = replies
    choices = [_cut_choice(choice, shape, StopScanner(stops, keeps_stop=keeps_stop)) for choice in reply["choices"]]
    return {**reply, "choices": choices}


def _cut_choice(choice: JsonObject, shape: ChoiceText, scanner: StopScanner) -> JsonObject:
    text = scanner.feed(shape.read(choice, shape.whole))
    if not scanner.has_stopped:
        return choice
    cut = shape.replace({**choice, **shape.make_ending(scanner.stop)}, shape.whole, text, with_calls=False)
    cut.pop("native_finish_reason", None)
    if cut.get("logprobs"):
        count, _ = count_tokens(cut["logprobs"], len(text))
        cut["logprobs"], _ = split_logprobs(cut["logprobs"], count)
    return cut


def _merge(ctx: Context, parts: int) -> StopCutter:
    request = ctx.request
    expected = count_choices(request) * count_prompts(request)
    prompt = count_prompt_bytes(request, _TEXTS)
    return StopCutter(
        ctx,
        _list_stops(request),
        _find_shape(request),
        expected,
        prompt,
        keeps_stop=request.get(_KEEPS_STOP) is True,
    )


def _find_shape(request: JsonObject) -> ChoiceText:
    return CHAT if "messages" in request else COMPLETIONS


def _list_stops(request: JsonObject) -> tuple[str, ...]:
    stop = request.get("stop")
    given = stop if isinstance(stop, list) else [stop]
    return tuple(one for one in given if isinstance(one, str) and one)


def count_prompt_bytes(request: JsonObject, names: Sequence[str]) -> int:
    """The number of bytes of all texts in these parameters of a request."""
    texts = walk_texts([request.get(name) for name in names], dict.values)
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


STOP_SEQUENCES = Emulation(_split, _join, _merge, _find_obstacle)
