"""What the configuration says about the keys of clients."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from .config_model import ConfigModel
from .rules import Bounds, reject
from .traffic import Count, Money, RateLimits
from .values import MAKE_KEY, Expiry, KeyHash, Label, ModelPattern, Secret

__all__ = ["Budget", "Key"]


class Budget(ConfigModel):
    """What a key may use in a day or a month of the calendar, in UTC. It is counted when a request ends, so requests
    that run when it is used up still end. What is unset is not limited."""

    tokens_per_day: Count | None = None
    """The most tokens a day, of prompts and answers together. Beyond it: 429 until the next day."""
    tokens_per_month: Count | None = None
    """The most tokens a month."""
    cost_per_day: Money | None = None
    """The most money a day, in the currency of the targets' `price`. Calls to targets without a price cost nothing."""
    cost_per_month: Money | None = None
    """The most money a month."""


class Key(ConfigModel):
    """A key that clients present."""

    name: Label
    """The key's name in the log. Responses created with the key belong to this name."""
    key: Secret | None = None
    """What the client sends, as `Authorization: Bearer KEY` or in the header api-key or x-api-key. Write `${NAME}`, not
    the key."""
    key_hash: KeyHash | None = None
    """Instead of `key`: its hash, `sha256:` and 64 hexadecimal digits. `dragoman keys new` makes a key and its hash."""
    models: list[ModelPattern] = field(default_factory=lambda: ["*"])
    """The models that the key may use: names, or patterns with `*`."""
    priority: Literal["normal", "low"] = "normal"
    """Whose requests are refused first when the proxy has too much to do."""
    rate: RateLimits = RateLimits()
    """How much the key may use in a minute and at one time."""
    budget: Budget = Budget()
    """How much the key may use in a day and in a month."""
    expires: Expiry | None = None
    """Until when the key works: the end of a date in UTC (`2027-01-31`), or a time (`2027-01-31T12:00:00Z`)."""
    metadata: dict[Label, Annotated[str, Bounds(min_length=1)]] = field(default_factory=dict)
    """What the log says in each line of a request with this key, such as `team: search`."""

    def __post_init__(self) -> None:
        if (self.key is None) == (self.key_hash is None):
            has = "neither key nor" if self.key is None else "both key and"
            reject("missing-key", f"the key {self.name} has {has} key_hash", "one of them", MAKE_KEY)
