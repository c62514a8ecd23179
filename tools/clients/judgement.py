"""What does not pass, by cause: known ones of reasons.yaml, and the reasons that nobody has explained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .catalog import Reason, find_reason
from .outcomes import Outcome, Verdict
from .routes import DRAGOMAN

__all__ = ["Failure", "find_defects", "group_by_cause", "list_failures", "write_count"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A check that did not pass, and its known cause."""

    client: str
    gateway: str
    route: str
    verdict: Verdict
    cause: Reason | None


def list_failures(reasons: Sequence[Reason], client: str, outcome: Outcome) -> Iterator[Failure]:
    """List the failed checks of a client, over all gateways."""
    for gateway in outcome.verdicts:
        for route, verdict in outcome.list_verdicts(gateway):
            if not verdict.passed:
                cause = find_reason(reasons, client, gateway, route, verdict.check, verdict.reason)
                yield Failure(client, gateway, route, verdict, cause)


def find_defects(reasons: Sequence[Reason], client: str, outcome: Outcome) -> list[Failure]:
    """List the failures over dragoman that have no known cause."""
    failures = list_failures(reasons, client, outcome)
    return [failure for failure in failures if failure.gateway in DRAGOMAN and failure.cause is None]


def write_count(verdicts: Sequence[Verdict]) -> str:
    """Count as in `12 of 13`, or `13` if all pass; nothing was run: a dash."""
    passed = sum(verdict.passed for verdict in verdicts)
    if not verdicts:
        return "–"
    return str(passed) if passed == len(verdicts) else f"{passed} of {len(verdicts)}"


def group_by_cause(failures: Sequence[Failure]) -> Mapping[Reason | str, list[Failure]]:
    """Group failures by their known cause, else by what the script said; those with a cause first."""
    groups: dict[Reason | str, list[Failure]] = {}
    for failure in sorted(failures, key=lambda one: one.cause is None):
        groups.setdefault(failure.cause or f"{failure.client}: {failure.verdict.reason}", []).append(failure)
    return groups
