"""The requests of a connection.

This module uses parts of aiohttp's requests that aiohttp does not document; `test_aiohttp_server_internals.py` names
them, and the releases that have them.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from aiohttp.http_parser import RawRequestMessage
from aiohttp.http_writer import StreamWriter
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from .aiohttp_bodies import KnownBody, WholeBody
from .known_heads import KnownHead

__all__ = ["Request", "create_known_request", "get_current_task", "get_known_head", "has_begun", "share_fields"]


class Request(BaseRequest):
    """One request. Its response asks `keep_alive` whether the connection stays open. `has_own_output` says that a
    response which writes its head itself has begun."""

    known_head: KnownHead[Any] | None = None
    has_own_output = False

    def __getattr__(self, name: str) -> Any:
        """Make the writer of a request with a known head, whose response seldom needs one."""
        if name != "_payload_writer":
            raise AttributeError(name)
        self._payload_writer = writer = StreamWriter(self._protocol, self._loop)
        return writer

    @property
    def keep_alive(self) -> bool:
        return super().keep_alive and not bool(cast(Any, self.protocol).is_draining)


def share_fields(connection: RequestHandler) -> dict[str, Any]:
    """The fields that all requests with known heads of a connection have in common."""
    return {
        "_protocol": connection,
        "_task": None,
        "_client_max_size": 0,
        "_client_max_fields": 0,
        "_loop": connection._loop,
        "_transport_sslcontext": connection.ssl_context,
        "_transport_peername": connection.peername,
        "_transport_sockname": connection.sockname,
    }


def create_known_request(shared: dict[str, Any], message: RawRequestMessage, payload: WholeBody | KnownBody) -> Request:
    """A request with a known head. Its base class would look at the address, which has no host. `shared` are the fields
    that `share_fields` returns for its connection."""
    request = Request.__new__(Request)
    request.__dict__ = {
        **shared,
        "known_head": payload.head,
        "_message": message,
        "_payload": payload,
        "_headers": message.headers,
        "_method": message.method,
        "_version": message.version,
        "_rel_url": message.url,
        "_cache": {},
        "_state": {},
    }
    return request


def has_begun(request: BaseRequest) -> bool:
    """Whether a part of its response was written."""
    return (isinstance(request, Request) and request.has_own_output) or request.writer.output_size > 0


def get_current_task(request: BaseRequest) -> asyncio.Task[Any] | None:
    """The running task, without a call of the system for the event loop."""
    return asyncio.current_task(request._loop)


def get_known_head(request: BaseRequest) -> KnownHead[Any] | None:
    """The head of a request, if it was known before the request came."""
    return request.known_head if isinstance(request, Request) else None
