"""Memory of a refused body goes back to the system in small steps, that of others in large ones."""

from __future__ import annotations

import pytest

from dragoman.proxy.http import heap
from dragoman.proxy.http.large_body import LargeBody

MEGABYTE = 1024 * 1024


class _Piece(bytes):
    """Notes the size of a step when it is freed."""

    steps: list[int]
    freed_with: list[int]

    def __del__(self) -> None:
        self.freed_with.append(self.steps[-1])


def test_a_refused_body_goes_back_in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, freed = [16 * MEGABYTE], list[int]()
    monkeypatch.setattr(heap, "_mallopt", lambda _, value: steps.append(value))
    monkeypatch.setattr(_Piece, "steps", steps, raising=False)
    monkeypatch.setattr(_Piece, "freed_with", freed, raising=False)
    assert LargeBody(_Piece(b"x") for _ in range(3)).take() == b"xxx"
    assert freed == [16 * MEGABYTE] * 3
    LargeBody(_Piece(b"x") for _ in range(3)).drop()
    assert freed[3:] == [MEGABYTE] * 3
    assert steps[-1] == 16 * MEGABYTE


def test_without_glibc_bodies_are_dropped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_mallopt", None)
    body = LargeBody([b"x"] * 3)
    body.drop()
    assert len(body) == 0
    assert list(body) == []
