"""The last repair of a reply or an event: missing nullable keys become null, forbidden nulls are removed."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.edits import remove, replace
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import lookup
from dragoman.adapters.validation import Validator, Violation

__all__ = ["REPAIRED", "repair", "repair_event"]

REPAIRED = "missing keys that may be null are set to null; other nulls are removed"
"""The reason of the change, for receipts."""

_ROUNDS = 3


def repair(body: JsonObject, validator: Validator) -> Violation | None:
    """Repair `body` in place until the validator accepts it. Returns the violation that remains, or None."""
    for _ in range(_ROUNDS):
        first = validator.first_violation(body)  # found at once: most replies that cannot be repaired end here
        if first is None or not _repair_violation(body, first):
            return first
        for violation in list(validator.violations(body)):
            if not _repair_violation(body, violation):
                return violation
    return validator.first_violation(body)


def repair_event(body: JsonObject, validator: Validator) -> None:
    """Repair an event of a stream in place. Raises Fault if a violation remains."""
    violation = repair(body, validator)
    if violation is not None:
        message = f"the provider sent an event that cannot be repaired: {violation.message}"
        raise Fault("upstream_invalid_response", message, code="upstream_invalid_event")


def _repair_violation(body: JsonObject, violation: Violation) -> bool:
    path = violation.path
    if violation.keyword == "required":
        rule = violation.rule.get("properties", {}).get(path[-1], {})
        if "null" not in rule.get("type", ()):
            return False
        replace(body, path, None)
        return True
    if violation.value is not None or not path:
        return False
    if path[-1] in (lookup(body, path[:-1]) or ()):  # one null may violate several rules
        remove(body, path)
    return True
