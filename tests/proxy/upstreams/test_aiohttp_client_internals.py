"""What `aiohttp_client.py` uses of aiohttp without aiohttp documenting it. A release that lacks some of it fails here
by name, before it fails in a connection."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from types import ModuleType

import aiohttp
from aiohttp import base_protocol, client_proto, client_reqrep, connector, http, http_exceptions, streams
from yarl import URL

from dragoman.contract.json_types import JsonValue
from dragoman.proxy.upstreams.aiohttp_client import Connector
from tests.tables import for_each

RELEASES = "3.14.0 to 3.14.5"
"""In which all of this works."""

# The object, its attribute, and the parameters that it must take.
INTERNALS: list[tuple[JsonValue, str, tuple[str, ...]]] = [
    (client_reqrep, "ConnectionKey", ()),
    (connector, "Connection", ()),
    (connector.Connection, "protocol", ()),
    (connector.Connection, "transport", ()),
    (connector.Connection, "close", ()),
    (connector.BaseConnector, "connect", ("req", "traces", "timeout")),
    (connector.TCPConnector, "_create_proxy_connection", ("req", "traces", "timeout")),
    (connector.TCPConnector, "_wrap_create_connection", ("args", "kwargs")),
    (client_reqrep, "ClientRequest", ("method", "url", "loop", "proxy", "proxy_headers")),
    (client_reqrep.ClientRequest, "connection_key", ()),
    (client_reqrep.ClientRequest, "is_ssl", ()),
    (client_proto.ResponseHandler, "set_response_params", ("read_until_eof", "auto_decompress")),
    (client_proto.ResponseHandler, "read", ()),
    (client_proto.ResponseHandler, "should_close", ()),
    (client_proto.ResponseHandler, "is_connected", ()),
    (client_proto.ResponseHandler, "resume_reading", ("resume_parser",)),
    (client_proto.ResponseHandler, "feed_data", ("data", "size")),
    (client_proto.ResponseHandler, "set_exception", ("exc",)),
    (client_proto.ResponseHandler, "close", ()),
    (streams.DataQueue, "__init__", ("loop",)),
    (client_proto.ResponseHandler, "data_received", ("data",)),
    (client_proto.ResponseHandler, "connection_lost", ("exc",)),
    (base_protocol.BaseProtocol, "_reading_paused", ()),
    (base_protocol.BaseProtocol, "_pause_transport_reading", ()),
    (base_protocol.BaseProtocol, "pause_reading", ()),
    (base_protocol.BaseProtocol, "_parser", ()),
    (streams.StreamReader, "_buffer", ()),
    (streams.StreamReader, "_eof", ()),
    (streams.StreamReader, "_exception", ()),
    (streams.StreamReader, "_eof_callbacks", ()),
    (streams.StreamReader, "on_eof", ("callback",)),
    (http, "RawResponseMessage", ()),
    (http_exceptions, "HttpProcessingError", ("code", "message")),
]


def complaint(owner: type | ModuleType, name: str) -> str:
    where = getattr(owner, "__qualname__", owner.__name__)
    return f"aiohttp {aiohttp.__version__} broke {where}.{name}, used in proxy/upstreams; {RELEASES} have it"


def parameters_of(function: Callable[..., object]) -> set[str]:
    return set(inspect.signature(function).parameters)


@for_each(("owner", "name", "parameters"), INTERNALS)
def test_aiohttp_still_has_it(owner: type | ModuleType, name: str, parameters: tuple[str, ...]) -> None:
    assert hasattr(owner, name), complaint(owner, name)
    if parameters:
        assert parameters_of(getattr(owner, name)) >= set(parameters), complaint(owner, name)


async def test_a_request_names_its_host() -> None:
    request = aiohttp.ClientRequest("POST", URL("http://host:81/"), loop=asyncio.get_running_loop())
    assert request.headers.get("Host") == "host:81", complaint(aiohttp.ClientRequest, "headers")


async def test_the_connector_makes_our_protocol() -> None:
    made = Connector()._factory()
    assert isinstance(made, client_proto.ResponseHandler)
    assert type(made).resume_reading is not client_proto.ResponseHandler.resume_reading


async def test_what_a_response_handler_knows_of_its_connection() -> None:
    handler = client_proto.ResponseHandler(asyncio.get_running_loop())
    for name in ("_payload", "_tail", "_should_close", "_exception"):
        assert hasattr(handler, name), complaint(client_proto.ResponseHandler, name)
