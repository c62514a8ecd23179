"""What does not pass, by cause: known ones of reasons.yaml, and the reasons that nobody has explained."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .catalog import Reason, find_reason
from .outcomes import Outcome, Verdict
from .routes import DRAGOMAN, ROUTES

__all__ = ["Failure", "find_defects", "group_by_cause", "list_failures", "shorten_reason", "write_count"]

_MASKS = {
    r"http://127\.0\.0\.1:\d+": "http://gateway",
    r"(?<![\w/.:])/(?!v1|serving|openai|chat|models)\w[^\s'\",:)]*/[^\s'\",:)]*": "FILE",
    r"(?<=fake)[-_]?[0-9a-f]{6,}\w*": "…",
    rf"over-(?:{'|'.join(ROUTES)})\b": "MODEL",
}


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
        groups.setdefault(failure.cause or shorten_reason(failure.verdict.reason), []).append(failure)
    return groups


def shorten_reason(reason: str, most: int = 220) -> str:
    """Shorten a reason to one line, without addresses and folders of this machine, identifiers and models' names."""
    for pattern, shown in _MASKS.items():
        reason = re.sub(pattern, shown, reason)
    text = " ".join(reason.split())
    return text if len(text) <= most else f"{text[:most]}…"
