"""Text completions in hub form: one or more prompts, as text or tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path
from dragoman.local_engine.generation import Delta, Finished, GenerationRequest, Usage

from .chunk_builder import ChunkBuilder, sum_usage
from .logprobs import CompletionLogprobs
from .request_parameters import check_best_of, check_request, read_sampling, read_stop_sequences, wants_usage

__all__ = ["CompletionChunkWriter", "CompletionsPlan", "plan_completions"]

SUPPORTED_FIELDS = frozenset({"prompt", "echo", "use_raw_prompt"})
DEFAULT_MAX_TOKENS = 16
MAX_PROMPTS = 64


@dataclass(frozen=True, slots=True)
class CompletionsPlan:
    """The plan of a completions request: one generation per prompt.

    `echoes` are the texts of the prompts, empty without `echo`. `skip_generation`: `max_tokens` is 0.
    """

    generations: tuple[GenerationRequest, ...]
    paths: tuple[Path, ...]
    echoes: tuple[str, ...]
    skip_generation: bool
    logprobs: bool
    usage: bool
    include_stop: bool


def plan_completions(
    request: JsonObject, encode: Callable[[str], Sequence[int]], decode: Callable[[Sequence[int]], str], bos: int | None
) -> CompletionsPlan:
    """Plan a request. Raises Fault with the path of the invalid field. Blocks while it tokenizes."""
    check_request(request, "hub/completions.request", SUPPORTED_FIELDS)
    check_best_of(request)
    if request.get("echo") and request.get("logprobs") is not None:
        message = "log probabilities of a prompt are not supported: use either echo or logprobs"
        raise Fault("unsupported_parameter", message, ("logprobs",), request["logprobs"])
    prompts = _list_prompts(request.get("prompt"))
    tokens = [tuple(encode(given) if isinstance(given, str) else given) for given, _ in prompts]
    tokens = [ids or (() if bos is None else (bos,)) for ids in tokens]
    for ids, (_, path) in zip(tokens, prompts, strict=True):
        if not ids:
            raise Fault("invalid_request", "the prompt is empty, and the model has no start token", path)
    max_tokens = request.get("max_tokens")
    max_tokens = DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
    return CompletionsPlan(
        generations=tuple(_build_generation(request, ids, max_tokens) for ids in tokens),
        paths=tuple(path for _, path in prompts),
        echoes=tuple(_read_echo(request, given, decode) for given, _ in prompts),
        skip_generation=max_tokens == 0,
        logprobs=request.get("logprobs") is not None,
        usage=wants_usage(request),
        include_stop=bool(request.get("include_stop_str_in_output")),
    )


def _list_prompts(given: Any) -> list[tuple[Any, Path]]:
    """List the prompts, each text or tokens, with their paths."""
    if given is None or isinstance(given, str) or isinstance(given[0], int):
        return [("" if given is None else given, ("prompt",))]
    if len(given) > MAX_PROMPTS:
        raise Fault("invalid_request", f"{len(given)} prompts; the limit is {MAX_PROMPTS}", ("prompt",))
    return [(prompt, ("prompt", index)) for index, prompt in enumerate(given)]


def _read_echo(request: JsonObject, given: str | list[int], decode: Callable[[Sequence[int]], str]) -> str:
    if not request.get("echo"):
        return ""
    return given if isinstance(given, str) else decode(given)


def _build_generation(request: JsonObject, tokens: tuple[int, ...], max_tokens: int) -> GenerationRequest:
    return GenerationRequest(
        prompt=tokens,
        sampling=read_sampling(request, request.get("logprobs")),
        max_tokens=max_tokens or 1,
        stop=read_stop_sequences(request),
        stop_ids=frozenset(request.get("stop_token_ids") or ()),
        ignore_eos=bool(request.get("ignore_eos")),
        n=request.get("n") or 1,
        skip_special=request.get("skip_special_tokens") is not False,
    )


class CompletionChunkWriter:
    """Writes the chunks of a reply. Choices are numbered through all prompts: n for each, in their order."""

    def __init__(self, plan: CompletionsPlan, model: str, token_bytes: Callable[[int], bytes]) -> None:
        self._plan = plan
        self._count = plan.generations[0].n
        self._chunks = ChunkBuilder("cmpl", "text_completion", model)
        self._usages: list[list[Usage]] = [[] for _ in plan.generations]
        self._logprobs = [CompletionLogprobs(token_bytes) for _ in range(self._count * len(plan.generations))]

    def begin(self) -> list[JsonObject]:
        """Write the echoed prompts, and the ends of the choices if nothing is generated."""
        found = []
        for prompt, echo in enumerate(self._plan.echoes):
            for index in range(self._count):
                reason = "length" if self._plan.skip_generation else None
                if echo or reason:
                    found.append(self._write_chunk(prompt, index, echo, None, reason))
            if self._plan.skip_generation:
                self._usages[prompt].append(Usage(len(self._plan.generations[prompt].prompt), 0))
        return found

    def write(self, prompt: int, event: Delta | Finished) -> list[JsonObject]:
        if isinstance(event, Finished):
            self._usages[prompt].append(event.usage)
            text = event.stop if self._plan.include_stop and isinstance(event.stop, str) else ""
            return [
                self._write_chunk(prompt, event.index, text, None, "length" if event.reason == "length" else "stop")
            ]
        writer = self._logprobs[prompt * self._count + event.index]
        logprobs = writer.write(event.logprobs) if self._plan.logprobs and event.logprobs else None
        return [self._write_chunk(prompt, event.index, event.text, logprobs, None)]

    def end(self) -> list[JsonObject]:
        return [self._chunks.build_usage(sum_usage(self._usages))] if self._plan.usage else []

    def _write_chunk(
        self, prompt: int, index: int, text: str, logprobs: JsonObject | None, reason: str | None
    ) -> JsonObject:
        position = prompt * self._count + index
        return self._chunks.build({"index": position, "text": text, "logprobs": logprobs, "finish_reason": reason})
