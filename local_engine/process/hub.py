"""What a process serves, and how it is loaded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from dragoman.adapters.call import JsonObject
from dragoman.local_engine.engine import Options

__all__ = ["Hub", "Load", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """A model folder, the name that it is served under (None: its own), and how it is run."""

    model_dir: Path
    name: str | None
    options: Options


class Hub(Protocol):
    """A loaded model. Requests and answers are in hub form. Everything raises Fault, at once or on the way; closing
    an iterator early ends its request before the engine's next step."""

    name: str

    def chat(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        """The chunks of the answer."""

    def completions(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        """The chunks of the completion."""

    async def embeddings(self, request: JsonObject) -> JsonObject:
        """The vectors, as a whole reply."""

    def whole(self, chunks: Iterable[JsonObject]) -> JsonObject:
        """The reply that all chunks of a stream make together."""

    def statistics(self) -> dict[str, Any]:
        """Numbers for a status page."""

    def close(self) -> None:
        """End what is running, and free the device. Blocks."""


Load: TypeAlias = Callable[[Settings], Awaitable[Hub]]
"""Raises FolderError and ProviderError."""
