"""The requests and events of the engine: plain values that do not need onnxruntime.

    GenerationRequest -> Engine -> Delta* (Finished, once for each of the n choices | Failed, once for the request)

A Delta contains final text of one choice and its tokens. Finished is the last event of a choice, Failed of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from dragoman.adapters.faults import Fault

__all__ = [
    "Delta",
    "Event",
    "Failed",
    "FinishReason",
    "Finished",
    "GenerationRequest",
    "SamplingParams",
    "TokenLogprob",
    "TokenMask",
    "Usage",
]

FinishReason: TypeAlias = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are sampled. Order: bias and penalties, mask, temperature, min_p, top_k, top_p; then one draw.

    `top_k` 0 and `top_p` 1 are off. `temperature` 0 selects the most likely token, the lowest id among equals. Presence
    and frequency penalties count generated tokens, `repetition_penalty` counts the prompt too. `logprobs` None returns
    no log probabilities; n returns those of each token and of the n most likely ones, before any of these steps.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    logprobs: int | None = None


class TokenMask(Protocol):
    """The tokens that may come next in one choice. Called from one thread at a time; `fill` while the model runs."""

    def fill(self, words: memoryview) -> bool:
        """Set bit t % 32 of the 32-bit word t // 32 for each allowed token t. Return False to allow all tokens.

        `words` is writable, zeroed, and has the format "i".
        """
        ...

    def accept(self, token: int) -> bool:
        """Record the sampled token. Return True if the text is complete and generation should end."""
        ...


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One request for `n` choices. With `max_tokens` None, a choice continues until the context is full.

    `stop` sequences end a choice and are not part of its text. With `ignore_eos`, the model's end tokens do not end it;
    `stop_ids` are additional end tokens. `mask` creates a TokenMask for each choice. `skip_special` omits special
    tokens from the text.
    """

    prompt: tuple[int, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stop_ids: frozenset[int] = frozenset()
    ignore_eos: bool = False
    n: int = 1
    mask: Callable[[], TokenMask] | None = None
    skip_special: bool = True


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token, its log probability, and the most likely tokens at its position, as (id, log probability)."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """New text of choice `index`, the tokens that it completes, and their log probabilities."""

    index: int
    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one choice. `cached` counts the prompt tokens whose keys and values were reused."""

    prompt: int
    completion: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """Choice `index` is complete. `stop` is the stop sequence, or the id of the end token, that ended it, if any."""

    index: int
    reason: FinishReason
    usage: Usage
    stop: str | int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The request failed: the engine had an error, or was closed."""

    fault: Fault


Event: TypeAlias = Delta | Finished | Failed
