"""What has changed since an endpoint was learned: a comparison with an older report, or with a provider's settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.contract.json_types import JsonObject, JsonValue

from .entry import derive_settings
from .findings import Evidence, Findings

__all__ = ["Difference", "Drift", "compare_findings", "compare_settings", "render_diff"]

_LISTS = ("lacks", "takes")
_UNSET_MEANS_NONE = ("limits.inputs", "max_tokens_name")
"""Settings that are needed only if the endpoint is unusual: if one is not set, that says something too."""
_SEEN_BY_CHANCE = ("quirks.", "reasoning_tags")
"""What the answers show only sometimes: if it is not seen, that does not mean that it is gone."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One changed fact; None means that there is none. `evidence` is the exchange that shows the new one."""

    name: str
    old: JsonValue
    new: JsonValue
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """The differences, and notes about what could not be compared."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]

    def to_json(self) -> JsonObject:
        return {
            "changed": bool(self.differences),
            "differences": [_write_difference(one) for one in self.differences],
            "notes": list(self.notes),
        }


def _write_difference(one: Difference) -> JsonObject:
    shown = {"sent": one.evidence.sent, "received": one.evidence.received} if one.evidence else {}
    return {"name": one.name, "old": one.old, "new": one.new, **shown}


def compare_findings(old: Findings, new: Findings) -> Drift:
    """Compare with an older report. What is not known on one side is not compared."""
    differences, notes = [], []
    for name in dict.fromkeys((*old.facts, *new.facts)):
        if name in old.unknown or name in new.unknown:
            why = new.unknown.get(name) or old.unknown[name]
            notes.append(f"{name} is not compared: {why}")
        elif name not in new.facts and name.startswith(_SEEN_BY_CHANCE):
            notes.append(f"{name} is not seen this time")
        else:
            differences += list(_compare_values(name, old.get(name), new.get(name), new))
    return Drift(tuple(differences), tuple(notes))


def _compare_values(name: str, old: JsonValue, new: JsonValue, findings: Findings) -> Iterator[Difference]:
    same = sorted(old) == sorted(new) if isinstance(old, list) and isinstance(new, list) else old == new
    if not same:
        found = findings.facts.get(name)
        yield Difference(name, old, new, found.evidence if found else None)


def compare_settings(old: JsonObject, new: Findings) -> Drift:
    """Compare with the settings of a provider and its target, named as `derive_settings` does. Settings that are not
    set are compared only if that means something."""
    derived = derive_settings(new)
    differences, notes = [], []
    for name in _LISTS:
        for field in sorted({*old.get(name, ()), *derived.get(name, ())}):
            listed, found = field in old.get(name, ()), field in derived.get(name, ())
            why = next((why for key, why in new.unknown.items() if key.endswith(f".{field}")), "")
            is_asked = any(key.partition(".")[2] == field for key, _ in new.list_below("fields"))
            if listed and not found and (why or not is_asked):
                notes.append(f"{name}: {field} is not compared: {why or 'it is not asked'}")
            elif listed != found:
                evidence = _find_evidence(new, field)
                differences.append(Difference(f"{name}.{field}", listed or None, found or None, evidence))
    for name in ("dialect", "profile", "protocols", "reasoning_tags", *_UNSET_MEANS_NONE):
        before, now = old.get(name), derived.get(name)
        if name in new.unknown or (before is None and name not in _UNSET_MEANS_NONE):
            notes += [f"{name} is not compared: {new.unknown[name]}"] if before is not None else []
        elif before is not None and now is None and name in _SEEN_BY_CHANCE:
            notes.append(f"{name} is not seen this time")
        else:
            differences += list(_compare_values(name, before, now, new))
    return Drift(tuple(differences), tuple(notes))


def _find_evidence(findings: Findings, field: str) -> Evidence | None:
    found = (finding.evidence for key, finding in findings.list_below("fields") if key.partition(".")[2] == field)
    return next(found, None)


def render_diff(drift: Drift, before: str, now: str) -> str:
    """Render the differences as a diff; empty if there are none. `before` and `now` name both sides."""
    lines = [f"--- {before}", f"+++ {now}"] if drift.differences else []
    for one in drift.differences:
        lines += [f"-{one.name}: {_show(one.old)}"] if one.old is not None else []
        lines += [f"+{one.name}: {_show(one.new)}"] if one.new is not None else []
        lines += [f"     {one.evidence.sent} -> {one.evidence.received}"] if one.evidence else []
    return "".join(f"{line}\n" for line in lines)


def _show(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
