"""The HTML report."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.contract.model import Json

__all__ = ["page"]


def page(reports: Sequence[Json]) -> str:
    raise NotImplementedError
