"""The Responses protocol, for all dialects: its response object, its events, readers and writers."""

from __future__ import annotations

__all__: list[str] = []
