"""The Responses protocol: what its dialects have in common."""

from __future__ import annotations

__all__: list[str] = []
