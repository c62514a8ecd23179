"""Which profile of a dialect an endpoint fits best: the replies of a run are judged by every profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .dialects import load_dialect
from .step_checks import run_checks
from .target import Target
from .verdicts import CaseResult, CheckResult, decide_verdict

__all__ = ["count_failures_by_profile", "suggest_profile"]


def count_failures_by_profile(results: Sequence[CaseResult], target: Target) -> dict[str, int]:
    """Count the cases that fail, for each profile of the dialect. Cases that are meant for some profiles are left
    out."""
    judged = [result for result in results if not result.case.profiles]
    return {
        profile: sum(_fails_by_profile(result, profile, target) for result in judged)
        for profile in load_dialect(target.dialect).profiles
    }


def _fails_by_profile(result: CaseResult, profile: str, target: Target) -> bool:
    if profile == target.schema_profile or result.verdict not in ("pass", "warn", "fail", "inconclusive"):
        return result.verdict == "fail"
    checks: list[CheckResult] = []
    for step, got in zip(result.case.steps, result.steps, strict=False):
        if got.outcome is not None:
            checks += run_checks(step, replace(got.outcome, profile=profile), result.case)
    return decide_verdict(checks)[0] == "fail"


def suggest_profile(failures: Mapping[str, int], used: str) -> str:
    """Return a sentence about a profile that fits the endpoint better than the one in use, empty if none does."""
    best = min(failures, key=lambda profile: failures[profile], default=used)
    if failures.get(best, 0) >= failures.get(used, 0):
        return ""
    return (
        f"the endpoint fits the profile {best} better: {failures[best]} failures instead of {failures[used]}"
        f" (--profile {best})"
    )
