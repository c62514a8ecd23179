"""Receipts: what dragoman changed in a request or a reply, and which path of the client an upstream's path came from.

A receipt keeps two things. *Changes* are for people: the log shows them, and the header `x-dragoman-changes` shows
those that lost something, and what was emulated. *Steps* are for `unmap`: each step is a set of (before, after) pairs
of paths that took effect at once. `unmap` undoes them from the last to the first, and so finds the path in the client's
request that a provider's error is about. Most requests have no error, and few changes: the pairs of a step are only
listed if a path below one of its roots, the first keys of the paths after it, is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from .paths import Path, Places, format_path

__all__ = ["HEADER", "Action", "Change", "PolicyName", "Receipt", "Weight"]

Action: TypeAlias = Literal["renamed", "dropped", "clamped", "filled", "moved", "converted", "emulated"]
Weight: TypeAlias = Literal["form", "loss"]
PolicyName: TypeAlias = Literal["unsupported", "out_of_range", "extra_parameters", "emulate_completions"]

HEADER = "x-dragoman-changes"
_MOST_ITEMS = 20
_MOST_BYTES = 2048
_RECENT = 8
_PLAIN = "".join(map(chr, range(0x20, 0x7F))).translate(dict.fromkeys(b'"\\%'))
"""The characters of an RFC 9651 string that stay as they are; others are percent-encoded, as are those that would need
a backslash."""
_MOST_TEXT = 500  # characters of a reason, and of a path in the log: clients and providers choose words in them
_NO_PATHS: frozenset[Path] = frozenset()  # shared by all receipts


class Change(NamedTuple):
    """One change to a request or a reply. `before` is empty for a filled value, `after` for a dropped one. `policy` is
    the policy of the configuration that decided it, None if no policy did."""

    action: Action
    before: Path
    after: Path
    reason: str
    weight: Weight
    policy: PolicyName | None = None

    def public(self) -> Mapping[str, str]:
        """Return the change as the log shows it: paths and reason, never a value."""
        shown = _SHOWN.get(self)
        return _show(self) if shown is None else shown


_create_change: Callable[[tuple[Action, Path, Path, str, Weight, PolicyName | None]], Change]
_create_change = partial(tuple.__new__, Change)  # without the function that a named tuple has for that
_SHOWN: dict[Change, Mapping[str, str]] = {}
"""The first changes of whole parameters, or of what is first in one, as the log shows them: most exchanges make the
same few."""
_MOST_SHOWN = 1_000
_FREQUENT: tuple[Path, ...] = ((), (0,))  # what follows the parameter


def _show(change: Change) -> Mapping[str, str]:
    before, after = change.before, change.after
    shown: dict[str, str] = {"action": change.action, "weight": change.weight, "reason": change.reason}
    if before:
        shown["before"] = _shorten(format_path(before))
    if after:
        shown["after"] = _shorten(format_path(after))
    is_frequent = before[1:] in _FREQUENT and after[1:] in _FREQUENT
    if is_frequent and len(_SHOWN) < _MOST_SHOWN and len(format_path(before + after)) <= _MOST_TEXT:
        _SHOWN[change] = shown
    return shown


class _Step:
    """Pairs of paths that took effect at once. `roots` has the first key of every path after it."""

    __slots__ = ("_before", "_list_pairs", "roots")

    def __init__(
        self,
        roots: Collection[str | int],
        list_pairs: Callable[[], Iterable[tuple[Path, Path]]],
        known: dict[Path, Path] | None = None,
    ) -> None:
        """`known` has what `list_pairs` lists, by the path after the step; without it, that is listed when needed."""
        self.roots = roots
        self._list_pairs = list_pairs
        self._before = known

    def undo(self, path: Path) -> Path:
        """The path before the step."""
        known = self._before
        if known is None:
            known = self._before = {}
            for before, after in self._list_pairs():
                known.setdefault(after, before)
        for length in range(len(path), 0, -1):
            found = known.get(path[:length])
            if found is not None:
                return found + path[length:]
        return path


class Receipt:
    """The changes of one exchange, in the order in which they were made."""

    __slots__ = ("_advisory", "_canonical", "_has_reported", "_steps", "changes", "violations")

    def __init__(self) -> None:
        self.violations = 0  # of the provider's schema in its reply, if the policy `replies` counts them
        self._has_reported = False  # whether there is a change that the header shows
        self.changes: list[Change] = []
        self._steps: list[_Step] = []
        self._canonical = 0  # how many steps lead to the canonical form
        self._advisory = _NO_PATHS  # paths of the client's

    def fork(self) -> Receipt:
        """Copy the receipt for one target, so that the changes for another target are not in it."""
        copy = Receipt()
        copy.changes = list(self.changes)
        copy._has_reported = self._has_reported
        copy._steps = list(self._steps)
        copy._canonical = self._canonical
        copy._advisory = self._advisory
        return copy

    # The `record_` methods take paths in the form being written, at the moment of the call. The receipt shows `before`
    # as the client wrote it.

    def record_rename(self, before: Path, after: Path, reason: str) -> None:
        """Record that a key got another name, and map the paths below it."""
        self._record("renamed", self.unmap(before), after, reason, "form")
        self.map_path(before, after)

    def record_move(self, before: Path, after: Path, reason: str) -> None:
        """Record that a value moved. The caller maps its path, and those of its neighbors, with one `map_paths`."""
        self._record("moved", self.unmap(before), after, reason, "form")

    def record_conversion(
        self,
        path: Path,
        reason: str,
        weight: Weight = "form",
        after: Path | None = None,
        policy: PolicyName | None = None,
    ) -> None:
        """Record that the value at `path` changed its form; with the weight `loss`, that a part of it was lost."""
        self._record("converted", self.unmap(path), path if after is None else after, reason, weight, policy)

    def record_fill(self, path: Path, reason: str, weight: Weight = "form") -> None:
        """Record that a value was added which the request or reply did not have; a loss if it is not a true one."""
        self._record("filled", (), path, reason, weight)

    def record_drop(self, path: Path, reason: str, weight: Weight = "loss", policy: PolicyName | None = None) -> None:
        """Record that a value was left out. With the weight `form`, this changes nothing of the meaning."""
        self._record("dropped", self.unmap(path), (), reason, weight, policy)

    def record_clamp(self, path: Path, reason: str, policy: PolicyName | None = None) -> None:
        """Record, as a loss, that a value was replaced by the nearest one that the target accepts."""
        self._record("clamped", self.unmap(path), path, reason, "loss", policy)

    def record_emulation(self, path: Path, reason: str, after: Path = ()) -> None:
        """Record that dragoman itself does what the value asks for, and at what cost; `after` is what it becomes."""
        self._record("emulated", self.unmap(path), after, reason, "form")

    def map_path(self, before: Path, after: Path) -> None:
        """As `map_paths`, for one pair."""
        self._steps.append(_Step(after[:1], tuple, {after: before}))

    def map_paths(self, pairs: Iterable[tuple[Path, Path]]) -> None:
        """Record that everything below each `before` is now below its `after`; all pairs take effect at once. No
        `after` is empty."""
        known = [*pairs]
        for before, after in known:
            if before != after:
                self._steps.append(_Step({last[0] for _, last in known}, lambda: known))
                return

    def map_paths_below(self, root: str, list_pairs: Callable[[], Places]) -> None:
        """As `map_paths`, for pairs whose every `after` begins with this key: they are listed if they are needed. What
        they are listed from must not change, and must not hold the receipt."""
        self._steps.append(_Step((root,), list_pairs))

    def unmap(self, path: Path) -> Path:
        """Return the path in the client's request that a path in the form written last came from."""
        return _undo_steps(self._steps, path) if self._steps else path

    def forget_paths(self) -> None:
        """Keep the changes alone: no path is unmapped any more, and thousands of messages make thousands of steps."""
        self._steps, self._advisory = [], _NO_PATHS

    def mark_advisory(self, path: Path) -> None:
        """Record that a value, in the form being written, is only a hint in the client's protocol, although the
        protocol of that form holds that it matters: a target that lacks it may go without."""
        self._advisory |= {self.unmap(path)}

    def is_advisory(self, path: Path) -> bool:
        """Whether the value at a path in the form being written was marked as a hint."""
        return bool(self._advisory) and self.unmap(path) in self._advisory

    def mark_canonical(self) -> None:
        """Record that the form written last is the canonical request."""
        self._canonical = len(self._steps)

    def unmap_to_canonical(self, path: Path) -> Path:
        """Return the path in the canonical request that a path in the form written last came from."""
        return _undo_steps(self._steps[self._canonical :], path)

    def absorb(self, other: Receipt) -> None:
        """Add the changes that a fork of this receipt has and this one lacks, and its violations."""
        known = set(self.changes)
        self.changes += [change for change in other.changes if change not in known]
        self._has_reported |= other._has_reported
        self.violations += other.violations

    def is_lost(self, path: Path) -> bool:
        """Whether a change of the weight `loss` is about this path of the client's."""
        return any(change.before == path for change in self.losses)

    @property
    def losses(self) -> list[Change]:
        """The changes of the weight `loss`."""
        return [change for change in self.changes if change.weight == "loss"]

    def header(self) -> str | None:
        """The losses and emulations as an RFC 9651 list, `dropped;path="seed";reason="..."`; None if there are none.

        At most 20 items and 2 KiB; a last item `more;count=N` counts those that were left out.
        """
        if not self._has_reported:
            return None
        shown = [change for change in self.changes if change.weight == "loss" or change.action == "emulated"]
        text = ""
        for count, change in enumerate(shown):
            item = _format_item(change)
            if count == _MOST_ITEMS or len(text) + len(item) + 2 > _MOST_BYTES - 20:
                return f"{text}, more;count={len(shown) - count}" if text else f"more;count={len(shown)}"
            text += f", {item}" if text else item
        return text

    def _record(
        self,
        action: Action,
        before: Path,
        after: Path,
        reason: str,
        weight: Weight,
        policy: PolicyName | None = None,
    ) -> None:
        if len(reason) > _MOST_TEXT:
            reason = _shorten(reason)
        if weight == "loss" or action == "emulated":
            self._has_reported = True
        change, changes = _create_change((action, before, after, reason, weight, policy)), self.changes
        recent = changes if len(changes) <= _RECENT else changes[-_RECENT:]
        if change not in recent:  # a change that each chunk of a stream repeats is recorded once
            changes.append(change)


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 3]}..."


def _undo_steps(steps: list[_Step], path: Path) -> Path:
    for step in reversed(steps):
        if path and path[0] in step.roots:
            path = step.undo(path)
    return path


def _format_item(change: Change) -> str:
    path = format_path(change.before or change.after)
    return f'{change.action};path="{quote(path, _PLAIN)}";reason="{quote(change.reason, _PLAIN)}"'
