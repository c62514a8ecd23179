"""Outcomes: what a client's script said of each check, by gateway and route; a JSON file for each client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ["Outcome", "Verdict", "load_outcome", "parse_verdicts", "save_outcome"]

_MOST = 600  # characters of a reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a script says of a check. A passed check has no reason."""

    check: str
    passed: bool
    reason: str = ""


@dataclass(slots=True)
class Outcome:
    """The verdicts on a client, by gateway and route. `failure` says why it is not installed."""

    version: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    """The versions of the packages that were installed by name."""
    gateways: dict[str, str] = field(default_factory=dict)
    """The versions of the gateways."""
    verdicts: dict[str, dict[str, list[Verdict]]] = field(default_factory=dict)
    failure: str = ""

    def list_verdicts(self, gateway: str) -> Iterator[tuple[str, Verdict]]:
        """List each route with each verdict of a gateway."""
        for route, verdicts in self.verdicts.get(gateway, {}).items():
            yield from ((route, verdict) for verdict in verdicts)


def parse_verdicts(output: str) -> list[Verdict]:
    """Parse what a script printed: the lines that begin with a JSON object with a check; the others are the client's
    own, whose threads may also write behind a verdict."""
    verdicts = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                row, _ = json.JSONDecoder().raw_decode(line)
            except ValueError:
                continue
            if "check" in row:
                verdicts.append(Verdict(str(row["check"]), row["passed"] is True, str(row.get("reason", ""))[:_MOST]))
    return verdicts


def save_outcome(folder: Path, client: str, outcome: Outcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{client}.json").write_text(json.dumps(asdict(outcome), indent=1, ensure_ascii=False) + "\n", "utf-8")


def load_outcome(folder: Path, client: str) -> Outcome:
    """Load the latest outcome of a client; an empty one if it has never run."""
    file = folder / f"{client}.json"
    if not file.exists():
        return Outcome()
    row = json.loads(file.read_text("utf-8"))
    verdicts = {
        gateway: {route: [Verdict(**one) for one in listed] for route, listed in routes.items()}
        for gateway, routes in row.pop("verdicts").items()
    }
    return Outcome(**row, verdicts=verdicts)
