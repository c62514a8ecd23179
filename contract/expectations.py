"""Known gaps: a file of `case id: reason`, and what a run makes of it.

A case in the file may fail without failing the run; one that passes although it is in the file is told, so that the
file only ever gets shorter. `*` stands for any part of an id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from .model import Json

__all__ = ["BAD", "Judgement", "NotExpectations", "judged", "read_expectations", "reason_for", "regressions"]

BAD = ("fail", "error")


class NotExpectations(ValueError):
    """The file does not say `case id: reason`."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """`unexpected` are cases that fail, `gaps` those that fail as expected, `surprises` those that pass although they
    are expected to fail, `unknown` entries of the file that fit no case that ran."""

    unexpected: tuple[str, ...]
    gaps: Mapping[str, str]
    surprises: tuple[str, ...]
    unknown: tuple[str, ...]


def read_expectations(file: Path) -> dict[str, str]:
    """Raises NotExpectations."""
    try:
        content = YAML(typ="safe", pure=True).load(file.read_text("utf-8"))
    except (OSError, YAMLError, UnicodeDecodeError) as error:
        raise NotExpectations(f"{file}: {error}") from None
    content = {} if content is None else content
    if not isinstance(content, dict) or not all(
        isinstance(k, str) and isinstance(v, str) and v for k, v in content.items()
    ):
        raise NotExpectations(f"{file}: it must say `case id: reason`, a line for each")
    return content


def judged(report: Json, expected: Mapping[str, str]) -> Judgement:
    """A run in the light of its known gaps. Cases that were skipped or inconclusive say nothing."""
    bad = [case["id"] for case in report["cases"] if case["verdict"] in BAD]
    good = [case["id"] for case in report["cases"] if case["verdict"] in ("pass", "warn")]
    reasons = {id_: reason for id_ in (*bad, *good) if (reason := reason_for(id_, expected)) is not None}
    ids = [case["id"] for case in report["cases"]]
    return Judgement(
        unexpected=tuple(id_ for id_ in bad if id_ not in reasons),
        gaps={id_: reasons[id_] for id_ in bad if id_ in reasons},
        surprises=tuple(id_ for id_ in good if id_ in reasons),
        unknown=tuple(pattern for pattern in expected if not any(fnmatchcase(id_, pattern) for id_ in ids)),
    )


def regressions(old: Json, new: Json) -> list[str]:
    """Cases that fail now and did not before; a case that is new and fails is none."""
    before = {case["id"]: case["verdict"] for case in old["cases"]}
    return [
        case["id"]
        for case in new["cases"]
        if case["verdict"] in BAD and before.get(case["id"], "fail") in ("pass", "warn")
    ]


def reason_for(id_: str, expected: Mapping[str, str]) -> str | None:
    """Why the case may fail, None where it may not."""
    return next((reason for pattern, reason in expected.items() if fnmatchcase(id_, pattern)), None)
