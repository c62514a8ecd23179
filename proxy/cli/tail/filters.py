"""Which exchanges are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

__all__ = ["Filter"]

_STATUS = re.compile(r"[1-5](?:\d\d|xx)")


@dataclass(frozen=True, slots=True)
class Filter:
    """An exchange is shown if it has one of the `models`, one of the `statuses` and one of the `keys`, as far as they
    are given, the `outcome`, and losses if these are asked for. Raises ValueError for what is no status."""

    models: Sequence[str] = ()
    statuses: Sequence[str] = ()
    outcome: str | None = None
    keys: Sequence[str] = ()
    losses: bool = False

    def __post_init__(self) -> None:
        for status in self.statuses:
            if not _STATUS.fullmatch(status):
                raise ValueError(f"--status {status}: expected a status such as 429, or a class such as 5xx")

    @property
    def takes_all(self) -> bool:
        """Whether nothing is left out."""
        return self == Filter()

    def accepts(self, line: Mapping[str, Any]) -> bool:
        """Whether the line of an event is shown. If anything is left out, only exchanges are shown, and by their status
        requests that were refused without one."""
        if self.takes_all:
            return True
        return (
            (line.get("event") == "exchange" or (line.get("event") == "refused" and bool(self.statuses)))
            and (not self.models or any(fnmatchcase(str(line.get("model", "")), one) for one in self.models))
            and (not self.statuses or any(_has_status(line.get("status"), one) for one in self.statuses))
            and self.outcome in (None, line.get("outcome"))
            and (not self.keys or line.get("key") in self.keys)
            and (not self.losses or _has_losses(line.get("changes")))
        )


def _has_status(status: Any, wanted: str) -> bool:
    text = str(status)
    return text == wanted or (wanted.endswith("xx") and len(text) == 3 and text[0] == wanted[0])


def _has_losses(changes: Any) -> bool:
    """Of a log line the changes are listed, of a running proxy's events they are counted."""
    if isinstance(changes, Mapping):
        return bool(changes.get("loss"))
    found = changes if isinstance(changes, list) else []
    return any(isinstance(change, Mapping) and change.get("weight") == "loss" for change in found)
