"""What the configuration says about calls to providers: connections, timeouts, retries, rates, and targets that
fail."""

from __future__ import annotations

from typing import Annotated

from .config_model import ConfigModel
from .rules import Bounds
from .values import NO_BOOL, Seconds

__all__ = ["Breaker", "Count", "Money", "Pool", "Price", "RateLimits", "Retries", "Timeouts"]

Count = Annotated[int, Bounds(gt=0), NO_BOOL]
Money = Annotated[float, Bounds(ge=0, allow_inf_nan=False), NO_BOOL]


class Pool(ConfigModel):
    connections: Count = 256
    """The most calls to the provider at one time."""
    queue: Annotated[int, Bounds(ge=0), NO_BOOL] = 256
    """How many further calls may wait for a free connection; for more the next target is tried, or the client gets
    503."""
    queue_timeout: Seconds = 5.0
    """How long a call may wait for a free connection before the next target is tried."""
    idle: Seconds = 15.0
    """How long an unused connection is kept."""


class Timeouts(ConfigModel):
    connect: Seconds = 5.0
    """Until the connection to the provider is established, TLS included."""
    first_token: Seconds = 120.0
    """Until the first event of a stream."""
    first_byte: Seconds | None = None
    """Until the first byte of a reply that is not a stream; then the next target is tried. Unset: as long as `total`,
    because many servers send nothing before a whole reply is complete."""
    inter_token: Seconds = 60.0
    """Between two events of a stream."""
    total: Seconds = 600.0
    """For the whole exchange, earlier attempts included."""


class Retries(ConfigModel):
    """Further tries of a request whose target failed before anything was sent to the client."""

    attempts: Count = 3
    """The most tries of one request, over all targets."""
    ratio: Annotated[float, Bounds(ge=0, le=1, allow_inf_nan=False)] = 0.1
    """How many retries a provider gets at most, as a share of its requests; 0.1 is one for ten requests."""
    per_second: Annotated[float, Bounds(ge=0, allow_inf_nan=False)] = 3.0
    """How many retries a second a provider gets in any case."""


class Breaker(ConfigModel):
    """When a target that fails is left alone, and for how long. A target without an alternative is still tried."""

    failures: Count = 5
    """After so many failures in a row the target pauses."""
    ratio: Annotated[float, Bounds(gt=0, le=1, allow_inf_nan=False)] = 0.5
    """It also pauses if more than this share of the requests within `window` failed,"""
    requests: Count = 20
    """of at least so many requests."""
    window: Seconds = 60.0
    """The time in which requests are counted."""
    pause: Seconds = 5.0
    """How long the first pause is. Then one request tries the target; if it fails, the next pause is twice as long."""
    longest_pause: Seconds = 60.0
    """How long a pause is at most."""


class RateLimits(ConfigModel):
    """How much a key may use, or a provider gets. What is unset is not limited."""

    requests_per_minute: Count | None = None
    """The most requests a minute. Beyond it: 429 with `retry-after`, or the next target."""
    tokens_per_minute: Count | None = None
    """The most tokens a minute, of prompts and answers together. They are counted when a request ends."""
    concurrency: Count | None = None
    """The most requests at one time."""
    burst: Count | None = None
    """How many requests, and how many tokens, may come at once. Default: as many as a minute allows."""


class Price(ConfigModel):
    """What a target costs, for a million tokens, in any currency."""

    input: Money
    """For tokens of the prompt."""
    output: Money
    """For tokens of the answer, its reasoning included."""
    cached: Money | None = None
    """For tokens of the prompt that the provider read from its cache. Default: as `input`."""
