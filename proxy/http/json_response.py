"""Responses that are whole: JSON bodies with the headers that every answer has."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from aiohttp.web_response import Response
from multidict import CIMultiDict

__all__ = ["SERVER", "as_response", "encode"]

SERVER = "dragoman"
_JSON = "application/json"


def encode(body: Mapping[str, object]) -> bytes:
    return orjson.dumps(body)


def as_response(status: int, body: bytes, headers: Mapping[str, str]) -> Response:
    """`body` is JSON text, or empty."""
    all_headers = CIMultiDict(headers)
    all_headers["Server"] = SERVER
    if body:
        all_headers.setdefault("Content-Type", _JSON)
    return Response(status=status, body=body, headers=all_headers)
