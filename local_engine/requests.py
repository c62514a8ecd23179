"""What the engine is asked, and what it says: plain values, none of which needs the runtime.

    Generation -> Engine -> Delta* (Finished, once for each of the n choices | Failed, once for the request)

A Delta of a choice holds the text that can no longer change and the tokens behind it. After Finished or Failed nothing
more comes for that choice or request.
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
    "Generation",
    "Sampling",
    "TokenLogprob",
    "TokenMask",
    "Usage",
]

FinishReason: TypeAlias = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen. Order: bias and penalties, mask, temperature, min_p, top_k, top_p; then one draw.

    `top_k` 0 and `top_p` 1 are off. `temperature` 0 takes the likeliest token, the lowest id among equals. Presence and
    frequency penalties count generated tokens, `repetition_penalty` counts the prompt's too. `logprobs` None gives no
    log probabilities, a number n gives each token's own and the n likeliest; they are the model's, before all of this.
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
    """Which tokens may come next, for one choice. Called from one thread at a time, `fill` beside the model's run."""

    def fill(self, words: memoryview) -> bool:
        """Set bit t % 32 of the 32-bit word t // 32 for each token t that may come; False leaves all of them allowed.

        `words` comes zeroed and writable, format "i".
        """
        ...

    def accept(self, token: int) -> bool:
        """Take note of the token that was chosen. True if the text is complete and generation should end."""
        ...


@dataclass(frozen=True, slots=True)
class Generation:
    """One request. `max_tokens` None goes on until the context is full.

    `stop` strings end a choice before they appear in its text. `ignore_eos` runs over the model's own end tokens;
    `stop_ids` are further end tokens. `mask` makes a TokenMask for each choice. `skip_special` leaves special tokens
    out of the text.
    """

    prompt: tuple[int, ...]
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stop_ids: frozenset[int] = frozenset()
    ignore_eos: bool = False
    n: int = 1
    mask: Callable[[], TokenMask] | None = None
    skip_special: bool = True


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token, its log probability, and the likeliest at its place (id, log probability), likeliest first."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of choice `index`: settled text, the tokens whose text is settled with it, their log probabilities."""

    index: int
    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one choice. `cached` are those of the prompt whose keys and values were reused."""

    prompt: int
    completion: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """Choice `index` is over. `stop` is the stop string that ended it, or the end token's id, if one did."""

    index: int
    reason: FinishReason
    usage: Usage
    stop: str | int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The whole request is over: the engine broke, or was closed."""

    fault: Fault


Event: TypeAlias = Delta | Finished | Failed
