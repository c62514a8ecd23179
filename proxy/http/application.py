"""What answers the requests of the HTTP server."""

from __future__ import annotations

from typing import Protocol

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.faults import Fault

__all__ = ["Application"]


class Application(Protocol):
    """Answers the requests."""

    async def handle(self, request: BaseRequest) -> StreamResponse: ...

    def reject(self, request: BaseRequest, fault: Fault) -> Response:
        """Answer a request that never reached `handle`, or that `handle` could not answer."""

    def log_defect(self, error: BaseException | None) -> None:
        """Log an exception that nothing handled."""
