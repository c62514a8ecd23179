"""The page that shows what the contract suite found true of each server, by cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.contract.causes import group_by_cause
from dragoman.contract.json_types import JsonObject
from dragoman.contract.known_gaps import find_gap_reason, read_known_gaps
from dragoman.contract.reports.json_report import read_report
from dragoman.contract.verdicts import VERDICTS

from .catalog import SERVERS, Server
from .suite import EXPECTED, WARNED, list_runs

__all__ = ["read_reports", "write_judgements"]

_HEAD = """\
# Real servers, judged by the contract suite

`dragoman contract`, run once against each of the servers of [real-servers.md](real-servers.md), which nobody here
wrote. Every failure, warning and error was compared with its wire log: what follows is true of the server, not of the
small model that it serves. (LitServe calls an application, `tools/real_servers/litserve_app.py`: what that ignores is
not LitServe's doing.) A line is one cause, with what the server sends and the cases that show it. The reports and
`contract/cases/` name the source of each requirement.

<!-- not run: needs the installed servers -->
```console
$ uv run python -m tools.real_servers judge       # starts each server, runs the suite, and writes this page
$ uv run python -m tools.real_servers judge vllm --only 'chat/stream/*'
```

The reports, with every request and reply, are below your cache folder; `--to` names another. The reasons are in
`tools/real_servers/expected/`, a file of known gaps for each server, so a run fails only for what is new, which this
page marks with *new*; what was read in the logs of warnings is in `tools/real_servers/warned/`. For a new version of
a server, `dragoman contract expect report.json --reason ...` writes the lines to look at. The last column counts the
failures by the profile `actual`: the difference is what OpenAI's reference says and most servers do not send.
"""


_ELSEWHERE = ("--protocol", "the case drives a proxy")


def read_reports(folder: Path) -> dict[str, list[JsonObject]]:
    """Read the reports of each server, by its name; a server without one is left out. Raises InvalidReportError."""
    found: dict[str, list[JsonObject]] = {}
    for server in SERVERS.values():
        files = [folder / f"{run.name}.json" for run in list_runs(server)]
        reports = [read_report(file) for file in files if file.exists()]
        if reports:
            found[server.name] = reports
    return found


def write_judgements(reports: Mapping[str, Sequence[JsonObject]], versions: Mapping[str, str | None]) -> str:
    """Write the page. `versions` has the version of each server, by its name. Raises InvalidGapsError."""
    heads = {name: f"{SERVERS[name].title} {versions.get(name) or ''}".strip() for name in reports}
    lines = [
        _HEAD,
        f"| server | {' | '.join(VERDICTS)} | failures as `actual` |",
        "|---|" + "---:|" * (len(VERDICTS) + 1),
    ]
    lines += [_write_sums(heads[name], found) for name, found in reports.items()]
    for name, found in reports.items():
        lines += ["", f"## {heads[name]}", "", *_write_server(SERVERS[name], found)]
    return "\n".join(lines) + "\n"


def _write_sums(head: str, reports: Sequence[JsonObject]) -> str:
    counts = [sum(_count_asked(report, verdict) for report in reports) for verdict in VERDICTS]
    actual = sum(report["profiles"].get("actual", 0) for report in reports)
    return f"| {head} | {' | '.join(map(str, [*counts, actual]))} |"


def _count_asked(report: JsonObject, verdict: str) -> int:
    """Count the cases with that verdict, without those that drive a proxy, or belong to another run of the server."""
    cases: list[JsonObject] = report["cases"]
    return sum(case["verdict"] == verdict and not case["reason"].startswith(_ELSEWHERE) for case in cases)


def _write_server(server: Server, reports: Sequence[JsonObject]) -> Iterator[str]:
    cases = [case for report in reports for case in report["cases"]]
    yield from _write_groups("fails", _group_by_reason(cases, ("fail", "error"), _read_reasons(EXPECTED, server)))
    yield from _write_groups("warns", _group_warnings(cases, _read_reasons(WARNED, server)))
    yield from _write_groups("inconclusive", _group_by_reason(cases, ("inconclusive",), {}))
    unserved = sorted({case["protocol"] for case in cases if "is not served" in case["reason"]})
    if unserved:
        yield f"- not served: {', '.join(unserved)}"


def _read_reasons(folder: Path, server: Server) -> Mapping[str, str]:
    file = folder / f"{server.name}.yaml"
    return read_known_gaps(file) if file.exists() else {}


def _group_warnings(cases: Sequence[JsonObject], reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Group warnings by what is known of them, else by their cause."""
    groups: dict[str, list[str]] = {}
    for group in group_by_cause(cases, ("warn",)):
        for case in group["cases"]:
            groups.setdefault(find_gap_reason(case, reasons) or group["cause"], []).append(case)
    return groups


def _group_by_reason(
    cases: Sequence[JsonObject], verdicts: Sequence[str], gaps: Mapping[str, str]
) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for case in cases:
        if case["verdict"] in verdicts:
            unknown = f"*new* {case['reason']}" if case["verdict"] != "inconclusive" else case["reason"]
            groups.setdefault(find_gap_reason(case["id"], gaps) or unknown, []).append(case["id"])
    return groups


def _write_groups(word: str, groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for reason, ids in groups.items():
        yield f"- **{word}** {_clean(reason)} · {_list_ids(ids)}"


def _list_ids(ids: Sequence[str], most: int = 6) -> str:
    shown = [f"`{id_}`" for id_ in ids[:most]]
    return ", ".join([*shown, f"and {len(ids) - most} more"] if len(ids) > most else shown)


def _clean(text: Any, most: int = 260) -> str:
    text = " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= most else f"{text[:most]}…"
