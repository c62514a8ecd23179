"""The loader of the service. It takes seconds, in a thread, so /health can answer meanwhile."""

from __future__ import annotations

from .interface import ModelService, ServiceSettings

__all__ = ["load_service"]


async def load_service(settings: ServiceSettings) -> ModelService:
    """Load a model folder. Raises FolderError and ProviderError."""
    from dragoman.local_engine.service import EngineService

    service = await EngineService.load(settings.model_dir, settings.options)
    service.name = settings.name or service.name
    return service
