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

__all__ = ["Request", "create_known_request", "get_current_task", "get_known_head"]


class Request(BaseRequest):
    """One request. Its response asks `keep_alive` whether the connection stays open."""

    known_head: KnownHead[Any] | None = None

    @property
    def keep_alive(self) -> bool:
        return super().keep_alive and not bool(cast(Any, self.protocol).is_draining)


def create_known_request(
    message: RawRequestMessage, payload: WholeBody | KnownBody, connection: RequestHandler, writer: StreamWriter
) -> Request:
    """A request with a known head. Its base class would look at the address, which has no host."""
    request = Request.__new__(Request)
    request.__dict__ = {
        "known_head": payload.head,
        "_message": message,
        "_protocol": connection,
        "_payload_writer": writer,
        "_payload": payload,
        "_headers": message.headers,
        "_method": message.method,
        "_version": message.version,
        "_cache": {},
        "_rel_url": message.url,
        "_state": {},
        "_task": None,
        "_client_max_size": 0,
        "_client_max_fields": 0,
        "_loop": connection._loop,
        "_transport_sslcontext": connection.ssl_context,
        "_transport_peername": connection.peername,
        "_transport_sockname": connection.sockname,
    }
    return request


def get_current_task(request: BaseRequest) -> asyncio.Task[Any] | None:
    """The running task, without a call of the system for the event loop."""
    return asyncio.current_task(request._loop)


def get_known_head(request: BaseRequest) -> KnownHead[Any] | None:
    """The head of a request, if it was known before the request came."""
    return request.known_head if isinstance(request, Request) else None
