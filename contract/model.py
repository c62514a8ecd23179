"""The data model of a case: the requests to send, and what must be true of the replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .dialects import DIALECTS
from .json_types import JsonObject, JsonValue

__all__ = [
    "DIALECTS",
    "LEVELS",
    "PROTOCOLS",
    "Case",
    "Check",
    "Expectation",
    "Level",
    "Step",
    "UpstreamPlan",
]

Level: TypeAlias = Literal["MUST", "SHOULD", "MAY"]

LEVELS: tuple[Level, ...] = ("MUST", "SHOULD", "MAY")
PROTOCOLS = ("chat", "responses", "completions", "embeddings", "messages", "count_tokens", "models")


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the closed vocabulary (`contract/checks`), with its argument and level."""

    name: str
    arg: JsonValue
    level: Level


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must be true of a reply. `status` lists the allowed statuses, `schema` names the side (reply, event, error)
    whose schema the body, or each event, must fit. If one of the `cooperation` checks fails, the model did not do what
    the case needs, and the case is inconclusive."""

    status: tuple[int, ...]
    schema: str | None = None
    checks: tuple[Check, ...] = ()
    cooperation: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class UpstreamPlan:
    """How the fake provider behind a proxy behaves during a step, and what must be true of the proxy's requests.

    `script` lists behaviours of `dragoman fake`, one for each request; the last one serves all later requests. `sent`
    are checks of the last request. `protocol` is what the provider serves, empty if it serves all.
    """

    script: tuple[str, ...] = ()
    sent: tuple[Check, ...] = ()
    protocol: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a case. `request` is the text of the case file with its placeholders; `save` maps a name to the
    path of the value in the reply that later steps read as `${saved.NAME}`."""

    request: JsonObject
    expect: Expectation
    save: Mapping[str, str] = field(default_factory=dict)
    upstream: UpstreamPlan | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One case for one dialect.

    `needs` lists the capabilities that the model or endpoint must have. `upstreams` lists the dialects of the fake
    provider that the case drives; a case with none runs against any endpoint. `profiles` lists the profiles in which
    the case applies; empty means all. `max_tokens` is the most that the model writes in the whole case. A `probe`
    finds out whether the endpoint serves the protocol. A `hostile` case may stop a weak server: it runs last, with a
    short timeout.
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
    hostile: bool = False

    @property
    def is_refusal(self) -> bool:
        """Whether a correct endpoint refuses every request of the case, so that the model writes nothing."""
        return all(status >= 400 for step in self.steps for status in step.expect.status)

    @property
    def area(self) -> str:
        """The first two parts of the id, as `chat/stream`."""
        return "/".join(self.id.split("/")[:2])
