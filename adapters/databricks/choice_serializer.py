"""Writing a completions stream whose choices cannot be told apart by their index."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.adapters.call import JsonObject
from dragoman.adapters.chat.writer import RenderingStreamWriter
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk

__all__ = ["ChoiceSerializer"]


class ChoiceSerializer(RenderingStreamWriter):
    """Writes one choice after the other: what the others say waits until the current one has finished. After a fault
    nothing of what still waits is written."""

    def __init__(self, fault_event: Callable[[Fault], JsonObject], render: Callable[[JsonObject], JsonObject]) -> None:
        super().__init__(fault_event, render, "beside the finish")
        self._waiting: dict[int, list[JsonObject]] = {}
        self._current: int | None = None

    def _write_chunk(self, chunk: Chunk) -> bytes:
        for choice in chunk.body["choices"]:
            self._waiting.setdefault(choice.get("index", 0), []).append({**chunk.body, "choices": [choice]})
        return self._turns() if chunk.body["choices"] else super()._write_chunk(chunk)

    def _turns(self) -> bytes:
        """Write what the current choice has said, and go on to the next one each time a choice has finished."""
        data = b""
        while self._waiting:
            if self._current is None:
                self._current = next(iter(self._waiting))
            said = self._waiting.pop(self._current, [])
            data += b"".join(super(ChoiceSerializer, self)._write_chunk(Chunk(body)) for body in said)
            if not said or not said[-1]["choices"][0].get("finish_reason"):
                break
            self._current = None
        return data
