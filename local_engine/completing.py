"""Text completions: prompts as text or tokens, several at once, in the hub's forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

from . import asking
from .envelope import Envelope, usage
from .logprobs import Offsets
from .requests import Delta, Finished, Generation, Usage

__all__ = ["CompletionWriter", "Completions", "plan_completions"]

HONOURED = frozenset({"prompt", "echo", "use_raw_prompt"})
DEFAULT_TOKENS = 16
MOST_PROMPTS = 64


@dataclass(frozen=True, slots=True)
class Completions:
    """`echoes` are the prompts' texts, empty where they are not to be repeated. `nothing`: no token is asked for."""

    generations: tuple[Generation, ...]
    paths: tuple[Path, ...]
    echoes: tuple[str, ...]
    nothing: bool
    logprobs: bool
    usage: bool
    include_stop: bool


def plan_completions(
    request: JsonObject, encode: Callable[[str], Sequence[int]], decode: Callable[[Sequence[int]], str], bos: int | None
) -> Completions:
    """Raises Fault, with the path of what is wrong. Blocks while it encodes."""
    asking.check(request, "hub/completions.request", HONOURED)
    asking.check_best_of(request)
    if request.get("echo") and request.get("logprobs") is not None:
        message = "log probabilities of a prompt are not served: ask for echo or for logprobs"
        raise Fault("unsupported_parameter", message, ("logprobs",), request["logprobs"])
    prompts = _prompts(request.get("prompt"))
    tokens = [tuple(encode(given) if isinstance(given, str) else given) for given, _ in prompts]
    tokens = [found or (() if bos is None else (bos,)) for found in tokens]
    for found, (_, path) in zip(tokens, prompts, strict=True):
        if not found:
            raise Fault("invalid_request", "the prompt is empty, and the model has no token to begin with", path)
    most = request.get("max_tokens")
    most = DEFAULT_TOKENS if most is None else most
    return Completions(
        generations=tuple(_generation(request, found, most) for found in tokens),
        paths=tuple(path for _, path in prompts),
        echoes=tuple(_echo(request, given, decode) for given, _ in prompts),
        nothing=most == 0,
        logprobs=request.get("logprobs") is not None,
        usage=asking.wants_usage(request),
        include_stop=bool(request.get("include_stop_str_in_output")),
    )


def _prompts(given: Any) -> list[tuple[Any, Path]]:
    """Each prompt, a text or tokens, with its path."""
    if given is None or isinstance(given, str) or isinstance(given[0], int):
        return [("" if given is None else given, ("prompt",))]
    if len(given) > MOST_PROMPTS:
        raise Fault("invalid_request", f"{len(given)} prompts; up to {MOST_PROMPTS} are served", ("prompt",))
    return [(prompt, ("prompt", place)) for place, prompt in enumerate(given)]


def _echo(request: JsonObject, given: Any, decode: Callable[[Sequence[int]], str]) -> str:
    if not request.get("echo"):
        return ""
    return given if isinstance(given, str) else decode(given)


def _generation(request: JsonObject, tokens: tuple[int, ...], most: int) -> Generation:
    return Generation(
        prompt=tokens,
        sampling=asking.sampling(request, request.get("logprobs")),
        max_tokens=most or 1,
        stop=asking.stops(request),
        stop_ids=frozenset(request.get("stop_token_ids") or ()),
        ignore_eos=bool(request.get("ignore_eos")),
        n=request.get("n") or 1,
        skip_special=request.get("skip_special_tokens") is not False,
    )


class CompletionWriter:
    """Choices count through all prompts: n for each, in their order."""

    def __init__(self, plan: Completions, model: str, token_bytes: Callable[[int], bytes]) -> None:
        self._plan = plan
        self._count = plan.generations[0].n
        self._envelope = Envelope("cmpl", "text_completion", model)
        self._usages: list[list[Usage]] = [[] for _ in plan.generations]
        self._offsets = [Offsets(token_bytes) for _ in range(self._count * len(plan.generations))]

    def begin(self) -> list[JsonObject]:
        """The prompts, where they are to be repeated; the whole of it, where nothing is to be generated."""
        found = []
        for prompt, echo in enumerate(self._plan.echoes):
            for index in range(self._count):
                reason = "length" if self._plan.nothing else None
                if echo or reason:
                    found.append(self._event(prompt, index, echo, None, reason))
            if self._plan.nothing:
                self._usages[prompt].append(Usage(len(self._plan.generations[prompt].prompt), 0))
        return found

    def take(self, prompt: int, event: Delta | Finished) -> list[JsonObject]:
        if isinstance(event, Finished):
            self._usages[prompt].append(event.usage)
            text = event.stop if self._plan.include_stop and isinstance(event.stop, str) else ""
            return [self._event(prompt, event.index, text, None, "length" if event.reason == "length" else "stop")]
        offsets = self._offsets[prompt * self._count + event.index]
        logprobs = offsets.take(event.logprobs) if self._plan.logprobs and event.logprobs else None
        return [self._event(prompt, event.index, event.text, logprobs, None)]

    def end(self) -> list[JsonObject]:
        return [self._envelope.usage(usage(self._usages))] if self._plan.usage else []

    def _event(self, prompt: int, index: int, text: str, logprobs: JsonObject | None, reason: str | None) -> JsonObject:
        place = prompt * self._count + index
        return self._envelope.event({"index": place, "text": text, "logprobs": logprobs, "finish_reason": reason})
