"""A large body, as the pieces in which it has arrived.

Whoever needs it in one piece takes it so, in a thread: to join tens of megabytes takes as long as the system needs to
provide the memory. A body that is refused is never joined.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from .heap import return_in_small_steps

__all__ = ["LargeBody", "list_pieces"]


class LargeBody:
    """The pieces, in order. `len` is their size in bytes."""

    __slots__ = ("_pieces", "_size")

    def __init__(self, pieces: Iterable[bytes] = ()) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        for piece in pieces:
            self.add(piece)

    def add(self, piece: bytes) -> None:
        """Put a piece behind the others."""
        self._pieces.append(piece)
        self._size += len(piece)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)

    def take(self) -> bytes:
        """The whole body, once. Other threads run meanwhile: Python joins bytes of a megabyte and more without its
        lock."""
        whole = b"".join(self._pieces)
        self._free()
        return whole

    def drop(self) -> None:
        """Free the pieces of a body that nobody needs. Other threads run meanwhile."""
        with return_in_small_steps():
            self._free()

    def _free(self) -> None:
        """The last piece goes first: memory at the end of the heap goes back to the system step by step, and not all of
        it at once when the last piece is free."""
        while self._pieces:
            self._pieces.pop()
        self._size = 0


def list_pieces(body: bytes | LargeBody) -> Iterable[bytes]:
    """The pieces of a body, which is one itself if it is not large."""
    return (body,) if isinstance(body, bytes) else body
