"""What is known about an endpoint: findings with the exchange that shows each, and what could not be decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = ["LACKING", "UNKNOWN_FIELD", "Evidence", "Finding", "Findings", "InvalidFindingsError"]

UNKNOWN_FIELD = "x_dragoman_learn"
"""A field that no API has: what an endpoint does with it says whether its acceptance of others means anything."""
LACKING = ("refused", "ignored", "wrong", "crashes")
"""What an endpoint does with a field that it lacks."""

VERSION = 1


class InvalidFindingsError(ValueError):
    """A file is no report of `dragoman learn`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One exchange, short and without secrets: what was sent, and what came back."""

    sent: str
    received: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact. `value` is any JSON value."""

    value: JsonValue
    evidence: Evidence | None = None


@dataclass
class Findings:
    """The facts by name, such as `protocols.chat`, `fields.chat.n` or `limits.inputs`; `unknown` maps the name of what
    could not be decided to the reason. `requests` and `tokens` are what the asking has cost, tokens as an estimate."""

    base_url: str = ""
    dialect: str = ""
    model: str = ""
    facts: dict[str, Finding] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    requests: int = 0
    tokens: int = 0
    started: str = ""
    interrupted: str = ""

    def learn(self, name: str, value: JsonValue, evidence: Evidence | None = None) -> None:
        """Note a fact."""
        self.facts[name] = Finding(value, evidence)
        self.unknown.pop(name, None)

    def give_up(self, name: str, why: str) -> None:
        """Note that something could not be decided, unless it is known."""
        if name not in self.facts:
            self.unknown[name] = why

    def get(self, name: str) -> JsonValue:
        """The value of a fact, None if it is not known."""
        found = self.facts.get(name)
        return None if found is None else found.value

    def list_below(self, prefix: str) -> Iterator[tuple[str, Finding]]:
        """The facts whose names begin with that prefix and a dot, without it."""
        for name, finding in self.facts.items():
            if name.startswith(f"{prefix}."):
                yield name.removeprefix(f"{prefix}."), finding

    @property
    def protocols(self) -> list[str]:
        """The protocols that the endpoint serves."""
        return [name for name, finding in self.list_below("protocols") if finding.value is True]

    def to_json(self) -> JsonObject:
        facts = {name: _write_finding(finding) for name, finding in self.facts.items()}
        whole = {
            "learned": VERSION,
            "started": self.started,
            "base_url": self.base_url,
            "dialect": self.dialect,
            "model": self.model,
            "requests": self.requests,
            "tokens": self.tokens,
            "facts": facts,
            "unknown": dict(self.unknown),
        }
        return {**whole, "interrupted": self.interrupted} if self.interrupted else whole

    @classmethod
    def from_json(cls, content: JsonValue) -> Findings:
        """Read a report. Raises InvalidFindingsError."""
        if not isinstance(content, dict) or content.get("learned") != VERSION:
            raise InvalidFindingsError("this is no report of dragoman learn --json")
        try:
            facts = {name: _read_finding(text) for name, text in content["facts"].items()}
            url, dialect, model, started = (str(content[key]) for key in ("base_url", "dialect", "model", "started"))
            return cls(url, dialect, model, facts, dict(content["unknown"]), started=started)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidFindingsError(f"the report is damaged: {error!r}") from None


def _write_finding(finding: Finding) -> JsonObject:
    shown = finding.evidence
    return {"value": finding.value, **({"sent": shown.sent, "received": shown.received} if shown else {})}


def _read_finding(text: Mapping[str, JsonValue]) -> Finding:
    shown = Evidence(str(text["sent"]), str(text["received"])) if "sent" in text else None
    return Finding(text["value"], shown)
