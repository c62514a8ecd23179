"""Whole responses: JSON bodies with the headers that every response has, and faults in the client's dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response
from multidict import CIMultiDict

from dragoman.adapters.call import Reply

from .aiohttp_responses import SingleWriteResponse

__all__ = ["SERVER", "add_server", "create_fault_response", "create_reply_response", "create_response", "serialize"]

SERVER = "dragoman"
_JSON = "application/json"


def serialize(body: Mapping[str, object]) -> bytes:
    """The object as JSON text."""
    return orjson.dumps(body)


def create_response(status: int, body: bytes, headers: Mapping[str, str]) -> Response:
    """`body` is JSON text, or empty."""
    all_headers = add_server(headers)
    if body:
        all_headers.setdefault("Content-Type", _JSON)
    return Response(status=status, body=body, headers=all_headers)


def create_reply_response(status: int, body: bytes, headers: Mapping[str, str]) -> SingleWriteResponse:
    """The response to a POST. `body` is JSON text. None of the headers is Server or Content-Type."""
    return SingleWriteResponse(status, body, {**headers, "Server": SERVER, "Content-Type": _JSON})


def add_server(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """The headers, with the one that every response of dragoman has."""
    all_headers = CIMultiDict(headers)
    all_headers["Server"] = SERVER
    return all_headers


def create_fault_response(
    reply: Reply, request: BaseRequest, headers: Mapping[str, str], mask: Callable[[bytes], bytes]
) -> Response:
    """The response for a fault that a dialect has rendered. Secrets are masked, because a fault may quote a provider.
    The connection is closed if a part of the request was not read."""
    response = create_response(reply.status, mask(serialize(reply.body)), {**headers, **reply.headers})
    if not request.content.at_eof():
        response.force_close()
    return response
