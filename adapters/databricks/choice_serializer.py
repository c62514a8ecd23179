"""Write a completions stream whose choices share an index: one choice after the other."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.adapters.call import JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.chat.writer import RenderingStreamWriter
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk

__all__ = ["ChoiceSerializer"]


class ChoiceSerializer(RenderingStreamWriter):
    """A StreamWriter that holds the chunks of other choices until the current choice has finished. After a fault
    the held chunks are dropped."""

    def __init__(
        self,
        fault_event: Callable[[Fault], JsonObject],
        render: Callable[[JsonObject], JsonObject],
        receipt: Receipt,
    ) -> None:
        super().__init__(fault_event, render, "with the finish", receipt)
        self._held_chunks: dict[int, list[JsonObject]] = {}
        self._current: int | None = None

    def _write_chunk(self, chunk: Chunk) -> bytes:
        for choice in chunk.body["choices"]:
            self._held_chunks.setdefault(choice.get("index", 0), []).append({**chunk.body, "choices": [choice]})
        return self._release() if chunk.body["choices"] else super()._write_chunk(chunk)

    def _release(self) -> bytes:
        """Write the held chunks of the current choice; when it has finished, go on with the next choice."""
        data = b""
        while self._held_chunks:
            if self._current is None:
                self._current = next(iter(self._held_chunks))
            chunks = self._held_chunks.pop(self._current, [])
            data += b"".join(super(ChoiceSerializer, self)._write_chunk(Chunk(body)) for body in chunks)
            if not chunks or not chunks[-1]["choices"][0].get("finish_reason"):
                break
            self._current = None
        return data
