"""A model folder becomes a hub, in a thread: seconds may pass, and /health answers meanwhile."""

from __future__ import annotations

import asyncio

from .hub import Hub, Settings

__all__ = ["load"]


async def load(settings: Settings) -> Hub:
    """Raises FolderError and ProviderError."""
    from dragoman.local_engine.hub import HubEngine

    return await asyncio.to_thread(HubEngine.load, settings.model_dir, settings.options, settings.name)
