"""Writes the list of the cases in which the gateways differ, from the reports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from _matrix_page import MARKS

__all__ = ["write_differences"]

Json = dict[str, Any]
Verdicts: TypeAlias = Mapping[str, Mapping[str, str]]
"""Maps a gateway and a provider to the verdict of one case."""

_NOT_RUN = "skip"
_LETTERS = {"anthropic": "n"}
"""The letter of a provider, if it is not its first one."""


def write_differences(reports: Sequence[Json]) -> str:
    """Write a table for each area with the cases in which some gateway does not do what another one does.

    Cases with the same results share a row.
    """
    gateways = list(dict.fromkeys(_split(report)[0] for report in reports if _split(report)[1]))
    found = _collect_verdicts(reports)
    different = {case: verdicts for case, verdicts in found.items() if _differs(verdicts)}
    areas: dict[str, dict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for case, verdicts in sorted(different.items()):
        area, name = _split_id(case)
        areas[area][tuple(_write_cell(verdicts.get(gateway, {})) for gateway in gateways)].append(name)
    head = f"The gateways differ in {len(different)} of the {len(found)} cases.\n"
    return "\n".join([head, *(_write_area(area, gateways, rows) for area, rows in areas.items())])


def _split(report: Json) -> tuple[str, str]:
    """Return the gateway and the provider; a fake alone has no provider."""
    gateway, _, provider = report["target"]["name"].partition(" > ")
    return gateway, provider


def _split_id(case: str) -> tuple[str, str]:
    """Split off the area: the protocol and the group, and of quirks also their own group."""
    parts = case.split("/")
    count = 3 if parts[1] == "quirks" else 2
    return "/".join(parts[:count]), "/".join(parts[count:])


def _collect_verdicts(reports: Sequence[Json]) -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for report in reports:
        gateway, provider = _split(report)
        for case in report["cases"] if provider else ():
            found[case["id"]][gateway][provider] = case["verdict"]
    return found


def _differs(verdicts: Verdicts) -> bool:
    """Whether the gateways that ran the case have different verdicts, with any provider."""
    run = {verdict for providers in verdicts.values() for verdict in providers.values() if verdict != _NOT_RUN}
    return len(run) > 1


def _write_cell(providers: Mapping[str, str]) -> str:
    """Write the verdict that all providers have in common, else the providers of each verdict by their letters."""
    by_verdict: dict[str, list[str]] = defaultdict(list)
    for provider, verdict in providers.items():
        if verdict != _NOT_RUN:
            by_verdict[verdict].append(_LETTERS.get(provider, provider[0]))
    if not by_verdict:
        return MARKS[_NOT_RUN]
    if len(by_verdict) == 1:
        return MARKS[next(iter(by_verdict))]
    return " ".join(f"{MARKS[verdict]} {''.join(letters)}" for verdict, letters in sorted(by_verdict.items()))


def _write_area(area: str, gateways: Sequence[str], rows: Mapping[tuple[str, ...], Sequence[str]]) -> str:
    lines = [f"### {area}", "", f"| {' | '.join(gateways)} | cases |", "|---" * (len(gateways) + 1) + "|"]
    lines += [f"| {' | '.join(cells)} | {', '.join(f'`{name}`' for name in names)} |" for cells, names in rows.items()]
    return "\n".join([*lines, ""])
