"""The goals of dragoman's speed and size, and what a run of `side_by_side.py` says of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from _rows import Row, compare_rows

__all__ = ["GOALS", "Finding", "Goal", "find_added", "judge_goals"]

Rows = Mapping[str, Row]


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure that `measure` reads of the rows, None if it was not measured. It must not exceed `must`, and shall
    not exceed `aim`; if `is_least`, it must not be lower."""

    what: str
    unit: str
    must: float
    aim: float
    measure: Callable[[Rows], float | None]
    case: str = ""
    target: str = ""
    is_least: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    goal: Goal
    value: float

    @property
    def verdict(self) -> str:
        sign = -1 if self.goal.is_least else 1
        if sign * self.value <= sign * self.goal.aim:
            return "aim met"
        return "met" if sign * self.value <= sign * self.goal.must else "missed"


def judge_goals(rows: Rows) -> Iterator[Finding]:
    """The goals whose figures were measured."""
    for goal in GOALS:
        value = goal.measure(rows)
        if value is not None:
            yield Finding(goal, value)


def find_added(rows: Rows, target: str, key: str) -> float | None:
    """The milliseconds that a target takes longer than nginx in the open loop: the median of the rounds."""
    if target not in rows or "nginx" not in rows:
        return None
    base = {one["round"]: one[key] for one in rows["nginx"].results["rate"]}
    found = [one[key] - base[one["round"]] for one in rows[target].results["rate"] if one["round"] in base]
    return statistics.median(found) if found else None


def _cost(what: str, target: str, case: str, must: float, aim: float) -> Goal:
    def measure(rows: Rows) -> float | None:
        return compare_rows(rows[target], rows["nginx"], case) if {target, "nginx"} <= rows.keys() else None

    return Goal(what, "x nginx's CPU", must, aim, measure, case, target)


def _added(what: str, key: str, must: float, aim: float) -> Goal:
    return Goal(what, "ms", must, aim, lambda rows: find_added(rows, "dragoman", key))


def _median(what: str, unit: str, key: str, must: float, aim: float) -> Goal:
    def measure(rows: Rows) -> float | None:
        found = rows["dragoman"].figures.get(key) if "dragoman" in rows else None
        return statistics.median(found) if found else None

    return Goal(what, unit, must, aim, measure)


def _outpace(rows: Rows) -> float | None:
    """How many times as many requests a second as LiteLLM."""
    if not {"dragoman", "litellm"} <= rows.keys():
        return None
    own, other = (rows[name].median("whole", "per_second") for name in ("dragoman", "litellm"))
    return own / other if own and other else None


GOALS = (
    _cost("4 KB chat", "dragoman", "whole", 7, 4.5),
    _cost("4 KB chat, to databricks", "databricks", "whole", 9, 6),
    _cost("4 KB Responses over chat", "responses", "whole", 11, 7),
    _cost("4 KB Responses over chat, kept", "kept", "whole", 16, 10),
    _cost("paced stream, an event of chat", "dragoman", "paced", 2.2, 1.5),
    _cost("paced stream, an event to databricks", "databricks", "paced", 2.2, 1.5),
    _cost("paced stream, an event of Responses", "responses", "paced", 2.6, 1.8),
    _cost("paced stream, an event of Responses, kept", "kept", "paced", 2.6, 1.8),
    _cost("paced stream, an event of Messages", "messages", "paced", 2.6, 1.8),
    _cost("burst, an event of chat", "dragoman", "burst", 1.0, 0.8),
    _cost("burst, an event to databricks", "databricks", "burst", 1.0, 0.8),
    _cost("burst, an event of Responses", "responses", "burst", 1.2, 1.0),
    _cost("burst, an event of Responses, kept", "kept", "burst", 1.2, 1.0),
    _cost("burst, an event of Messages", "messages", "burst", 1.2, 1.0),
    _cost("200 KB chat", "dragoman", "large", 10, 6),
    Goal("requests a second, 4 KB chat", "x LiteLLM's", 60, 120, _outpace, is_least=True),
    _added("800 requests a second: median above nginx's", "latency_ms_p50", 0.6, 0.3),
    _added("800 requests a second: 99th percentile above nginx's", "latency_ms_p99", 2.0, 0.7),
    _median("start to the first answer", "s", "start_s", 0.6, 0.35),
    _median("memory when idle", "MB", "idle_mb", 60, 50),
    _median("growth over 100,000 requests", "%", "growth_percent", 3, 1),
)
