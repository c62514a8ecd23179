"""A model folder becomes a hub. Seconds may pass; they do so in a thread, and /health answers meanwhile."""

from __future__ import annotations

from .hub import Hub, Settings

__all__ = ["load"]


async def load(settings: Settings) -> Hub:
    """Raises FolderError and ProviderError."""
    from dragoman.local_engine.hub import HubEngine

    hub = await HubEngine.load(settings.model_dir, settings.options)
    hub.name = settings.name or hub.name
    return hub
