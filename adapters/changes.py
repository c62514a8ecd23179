"""Receipts: what was altered on the way, and the way back from an upstream's path to the client's.

A receipt keeps two things. *Changes* are for people: they show in the log and, if something was lost, in the header
`x-dragoman-changes`. *Steps* are for `unmap`: each step is a set of (before, after) path pairs that took effect at
once, so that a path which a provider complains about can be walked back, step by step, to the path the client wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from .paths import Path, format_path

__all__ = ["HEADER", "Action", "Change", "Receipt", "Weight"]

Action: TypeAlias = Literal["renamed", "dropped", "clamped", "filled", "moved", "converted"]
Weight: TypeAlias = Literal["form", "loss"]

HEADER = "x-dragoman-changes"
_MOST_ITEMS = 20
_MOST_BYTES = 2048
_RECENT = 8


class Change(NamedTuple):
    """One thing altered on the way. `before` is empty for a filled value, `after` for a dropped one."""

    action: Action
    before: Path
    after: Path
    reason: str
    weight: Weight

    def public(self) -> dict[str, str]:
        """The change as the log shows it: paths and reason, never a value."""
        shown = {"action": self.action, "weight": self.weight, "reason": self.reason}
        if self.before:
            shown["before"] = format_path(self.before)
        if self.after:
            shown["after"] = format_path(self.after)
        return shown


class Receipt:
    """The changes of one exchange, in the order in which they were made."""

    __slots__ = ("_steps", "changes", "violations")

    def __init__(self) -> None:
        self.violations = 0  # of the provider's own schema, in its reply, if the policy has them counted
        self.changes: list[Change] = []
        self._steps: list[dict[Path, Path]] = []  # after -> before

    def fork(self) -> Receipt:
        """A copy to write the request for one target with: what another target would change stays out of it."""
        copy = Receipt()
        copy.changes = list(self.changes)
        copy._steps = list(self._steps)
        return copy

    # Paths given to these are paths in the form being written, as it is at that moment; the receipt shows `before` as
    # the client wrote it.

    def record_rename(self, before: Path, after: Path, reason: str) -> None:
        """Record that a key has another name, and map what is below it."""
        self._record("renamed", self.unmap(before), after, reason, "form")
        self.map_paths([(before, after)])

    def record_move(self, before: Path, after: Path, reason: str) -> None:
        """Record that something moved. Its path, and those of its neighbors, go through `map_paths`, once."""
        self._record("moved", self.unmap(before), after, reason, "form")

    def record_conversion(self, path: Path, reason: str, weight: Weight = "form", after: Path | None = None) -> None:
        """Record that the value at `path` changed its form, or, with the weight `loss`, lost something."""
        self._record("converted", self.unmap(path), path if after is None else after, reason, weight)

    def record_fill(self, path: Path, reason: str) -> None:
        """Record that a value was put in which was not given."""
        self._record("filled", (), path, reason, "form")

    def record_drop(self, path: Path, reason: str, weight: Weight = "loss") -> None:
        """Record that a value was left out; with the weight `form`, nothing is lost by it."""
        self._record("dropped", self.unmap(path), (), reason, weight)

    def record_clamp(self, path: Path, reason: str) -> None:
        """Record that a value was moved to the nearest one that the target takes: a loss."""
        self._record("clamped", self.unmap(path), path, reason, "loss")

    def map_paths(self, pairs: Iterable[tuple[Path, Path]]) -> None:
        """Record that everything below each `before` is now below its `after`; all pairs take effect at once."""
        step: dict[Path, Path] = {}
        for before, after in pairs:
            step.setdefault(after, before)
        if any(before != after for after, before in step.items()):
            self._steps.append(step)

    def unmap(self, path: Path) -> Path:
        """The path that the client wrote, for a path in the form that was written last."""
        for step in reversed(self._steps):
            path = _step_back(step, path)
        return path

    def absorb(self, other: Receipt) -> None:
        """Take over what a fork of this receipt has and this one lacks."""
        known = set(self.changes)
        self.changes += [change for change in other.changes if change not in known]
        self.violations += other.violations

    def is_lost(self, path: Path) -> bool:
        """True if what the client wrote at the path was lost or changed."""
        return any(change.before == path for change in self.losses)

    @property
    def losses(self) -> list[Change]:
        """The changes of the weight `loss`."""
        return [change for change in self.changes if change.weight == "loss"]

    def header(self) -> str | None:
        """The losses as an RFC 9651 list, `dropped;path="seed";reason="..."`, or None if nothing was lost.

        At most 20 items and 2 KiB; a last item `more;count=N` counts those that were left out.
        """
        losses = self.losses
        text = ""
        for count, change in enumerate(losses):
            item = _item(change)
            if count == _MOST_ITEMS or len(text) + len(item) + 2 > _MOST_BYTES - 20:
                return f"{text}, more;count={len(losses) - count}" if text else f"more;count={len(losses)}"
            text += f", {item}" if text else item
        return text or None

    def _record(self, action: Action, before: Path, after: Path, reason: str, weight: Weight) -> None:
        change = Change(action, before, after, reason, weight)
        if change not in self.changes[-_RECENT:]:  # a change of chunk after chunk of a stream is recorded once
            self.changes.append(change)


def _step_back(step: dict[Path, Path], path: Path) -> Path:
    for length in range(len(path), -1, -1):
        before = step.get(path[:length])
        if before is not None:
            return before + path[length:]
    return path


def _item(change: Change) -> str:
    path = format_path(change.before or change.after)
    return f'{change.action};path="{_quoted(path, "[]._-:/")}";reason="{_quoted(change.reason, " ,.()/-:;<=>[]")}"'


def _quoted(text: str, safe: str) -> str:
    return quote(text, safe=safe)
