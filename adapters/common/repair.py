"""The last repair of a reply or event: keys that may be null are filled, nulls that may not be are taken out."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.edits import remove, replace
from dragoman.adapters.paths import lookup
from dragoman.adapters.validation import Judge, Violation

__all__ = ["repair"]

_ROUNDS = 3


def repair(body: JsonObject, judge: Judge) -> Violation | None:
    """Alter `body` until the judge accepts it; the violation that stands in the way, or None."""
    for _ in range(_ROUNDS):
        violations = list(judge.violations(body))
        if not violations:
            return None
        for violation in violations:
            if not _mend(body, violation):
                return violation
    return next(judge.violations(body), None)


def _mend(body: JsonObject, violation: Violation) -> bool:
    path = violation.path
    if violation.keyword == "required":
        rule = violation.rule.get("properties", {}).get(path[-1], {})
        if "null" not in rule.get("type", ()):
            return False
        replace(body, path, None)
        return True
    if violation.value is not None or not path or path[-1] not in (lookup(body, path[:-1]) or ()):
        return False
    remove(body, path)
    return True
