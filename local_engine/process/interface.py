"""The interface between the engine process and the model that it serves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from dragoman.adapters.call import JsonObject
from dragoman.local_engine.engine import EngineOptions

__all__ = ["LoadService", "ModelService", "ServiceSettings"]


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """A model folder, the model's public name (None: its own), and how to run it."""

    model_dir: Path
    name: str | None
    options: EngineOptions


class ModelService(Protocol):
    """A loaded model. Requests, chunks and replies are in hub form.

    All methods raise Fault, and iterators at any time. Closing an iterator cancels its request before the next step.
    """

    name: str

    def chat(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        """Answer a chat request; yield chunks."""

    def completions(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        """Answer a completions request; yield chunks."""

    async def embeddings(self, request: JsonObject) -> JsonObject:
        """Answer an embeddings request."""

    def collect_reply(self, chunks: Iterable[JsonObject]) -> JsonObject:
        """Collect the chunks of a stream into a reply."""

    def statistics(self) -> JsonObject:
        """Numbers for a status page."""

    def close(self) -> None:
        """Fail all requests and release the device. Blocks."""


LoadService: TypeAlias = Callable[[ServiceSettings], Awaitable[ModelService]]
"""Loads a model. Raises FolderError and ProviderError."""
