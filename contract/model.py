"""What a case is: requests to send, and what must be true of what comes back. Cases are data; this is their shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .dialects import DIALECTS

__all__ = [
    "DIALECTS",
    "LEVELS",
    "PROTOCOLS",
    "Case",
    "Check",
    "Drive",
    "Expect",
    "Json",
    "Level",
    "Step",
]

Json: TypeAlias = dict[str, Any]
Level: TypeAlias = Literal["MUST", "SHOULD", "MAY"]

LEVELS: tuple[Level, ...] = ("MUST", "SHOULD", "MAY")
PROTOCOLS = ("chat", "responses", "completions", "embeddings", "models")


@dataclass(frozen=True, slots=True)
class Check:
    """One statement of the closed vocabulary (`contract/checks`), its argument, and how much it matters."""

    name: str
    arg: Any
    level: Level


@dataclass(frozen=True, slots=True)
class Expect:
    """`status` are the statuses allowed, `schema` the side whose schema the body, or each event, must fit.

    `cooperation` are checks of what only the model decides: where one fails, the case is inconclusive.
    """

    status: tuple[int, ...]
    schema: str | None = None
    checks: tuple[Check, ...] = ()
    cooperation: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Drive:
    """How the fake provider behind a proxy behaves during a step, and what must be true of what the proxy sent it.

    `script` are behaviours of `dragoman fake`, one for each request in turn and the last for all that follow; `sent`
    are checks of the last request.
    """

    script: tuple[str, ...] = ()
    sent: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One request. `request` is the case's own text with its placeholders; `save` names values of the reply."""

    request: Json
    expect: Expect
    save: Mapping[str, str] = field(default_factory=dict)
    drive: Drive | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One case for one dialect.

    `needs` are capabilities of the model or endpoint, `upstreams` the dialects of the fake that the case drives (empty:
    the case needs none), `profiles` those in which it holds (empty: all). `max_tokens` bounds what the whole case may
    make the model write.
    """

    id: str
    title: str
    source: str
    level: Level
    protocol: str
    dialect: str
    steps: tuple[Step, ...]
    needs: frozenset[str] = frozenset()
    max_tokens: int = 0
    upstreams: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    probe: bool = False

    @property
    def area(self) -> str:
        """The first two parts of the id, as `chat/stream`."""
        return "/".join(self.id.split("/")[:2])
