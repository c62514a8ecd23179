"""Known gaps: a file of `case id: reason`, the failures that a team accepts, and how a run compares with it.

A case in the file may fail without failing the run. A case that passes although it is in the file is reported, so that
somebody removes its line. `*` in an id matches any text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from .json_types import JsonObject
from .texts import shorten

__all__ = [
    "FAILED_VERDICTS",
    "GapComparison",
    "InvalidGapsError",
    "compare_with_gaps",
    "find_gap_reason",
    "find_regressions",
    "read_known_gaps",
    "render_known_gaps",
]

FAILED_VERDICTS = ("fail", "error")
_PASSED_VERDICTS = ("pass", "warn")
_MOST = 160  # characters of a text in the file


class InvalidGapsError(ValueError):
    """The file is not a mapping of `case id: reason`."""


@dataclass(frozen=True, slots=True)
class GapComparison:
    """`unexpected` are failed cases that are not in the file, `gaps` failed cases that are, with their reasons;
    `surprises` are cases in the file that pass, `unknown` entries of the file that match no case of the run."""

    unexpected: tuple[str, ...]
    gaps: Mapping[str, str]
    surprises: tuple[str, ...]
    unknown: tuple[str, ...]


def read_known_gaps(file: Path) -> dict[str, str]:
    """Read a file of known gaps. Raises InvalidGapsError."""
    try:
        content = YAML(typ="safe", pure=True).load(file.read_text("utf-8"))
    except (OSError, YAMLError, UnicodeDecodeError) as error:
        raise InvalidGapsError(f"{file}: {error}") from None
    content = {} if content is None else content
    if not isinstance(content, dict) or not all(
        isinstance(k, str) and isinstance(v, str) and v.strip() for k, v in content.items()
    ):
        raise InvalidGapsError(f"{file}: write one line `case id: reason` for each known gap")
    return content


def render_known_gaps(report: JsonObject, reason: str) -> str:
    """Render the first file: a line for each case that fails in the report, with its cause in a comment above."""
    target = report["target"]
    lines = [f"# Accepted failures of {shorten(target['name'], _MOST)} as {target['dialect']} ({target['profile']})."]
    for case in report["cases"]:
        if case["verdict"] == "fail":
            lines += [f"# {shorten(case['reason'], _MOST)}", f"{case['id']}: {json.dumps(shorten(reason, _MOST))}"]
    return "\n".join(lines) + "\n"


def compare_with_gaps(report: JsonObject, gaps: Mapping[str, str]) -> GapComparison:
    """Compare a report with the known gaps. Skipped and inconclusive cases are neither gaps nor surprises."""
    failed = [case["id"] for case in report["cases"] if case["verdict"] in FAILED_VERDICTS]
    passed = [case["id"] for case in report["cases"] if case["verdict"] in _PASSED_VERDICTS]
    reasons = {id_: reason for id_ in (*failed, *passed) if (reason := find_gap_reason(id_, gaps)) is not None}
    ids = [case["id"] for case in report["cases"]]
    return GapComparison(
        unexpected=tuple(id_ for id_ in failed if id_ not in reasons),
        gaps={id_: reasons[id_] for id_ in failed if id_ in reasons},
        surprises=tuple(id_ for id_ in passed if id_ in reasons),
        unknown=tuple(pattern for pattern in gaps if not any(fnmatchcase(id_, pattern) for id_ in ids)),
    )


def find_regressions(old: JsonObject, new: JsonObject) -> list[str]:
    """Find the cases that failed in the new report and passed in the old one. A new case is no regression."""
    before = {case["id"]: case["verdict"] for case in old["cases"]}
    return [
        case["id"]
        for case in new["cases"]
        if case["verdict"] in FAILED_VERDICTS and before.get(case["id"]) in _PASSED_VERDICTS
    ]


def find_gap_reason(id_: str, gaps: Mapping[str, str]) -> str | None:
    """Return why the case may fail, None if it may not."""
    return next((reason for pattern, reason in gaps.items() if fnmatchcase(id_, pattern)), None)
