"""What the modules of proxy/http use of aiohttp without aiohttp documenting it. A release that lacks some of it fails
here by name, before it fails in a connection."""

from __future__ import annotations

import inspect
from types import ModuleType

import aiohttp
from aiohttp import (
    abc,
    helpers,
    http_exceptions,
    http_parser,
    http_writer,
    streams,
    web_protocol,
    web_request,
    web_response,
    web_server,
)
from aiohttp.web_protocol import RequestHandler

from dragoman.contract.json_types import JsonValue
from dragoman.proxy.http.aiohttp_request import create_known_request, share_fields
from tests.tables import for_each

RELEASES = "3.14.4 and 3.14.5"
"""In which all of this works. 3.14.0 to 3.14.3 have it too, and ignore keepalive_timeout before the first request."""

# The object, its attribute, and the parameters that it must take.
INTERNALS: list[tuple[JsonValue, str, tuple[str, ...]]] = [
    (web_protocol, "ERROR", ()),
    (web_protocol, "_ErrInfo", ("status", "exc", "message")),
    (web_protocol, "RequestPayloadError", ()),
    (streams, "EMPTY_PAYLOAD", ()),
    (web_request.BaseRequest, "clone", ("method", "rel_url", "headers")),
    (streams.StreamReader, "feed_data", ()),
    (streams.StreamReader, "_buffer", ()),
    (streams.StreamReader, "_buffer_offset", ()),
    (streams.StreamReader, "_size", ()),
    (streams.StreamReader, "_low_water", ()),
    (streams.StreamReader, "is_eof", ()),
    (streams.StreamReader, "_eof", ()),
    (streams.StreamReader, "_exception", ()),
    (streams.StreamReader, "_wait", ("func_name",)),
    (streams.StreamReader, "_cursor", ()),
    (streams.StreamReader, "_http_chunk_splits", ()),
    (streams.StreamReader, "_protocol", ()),
    (streams.StreamReader, "feed_eof", ()),
    (http_parser, "RawRequestMessage", ()),
    (http_parser.RawRequestMessage, "_replace", ()),
    (streams.StreamReader, "begin_http_chunk_receiving", ()),
    (streams.StreamReader, "end_http_chunk_receiving", ()),
    (streams.StreamReader, "exception", ()),
    (http_exceptions, "LineTooLong", ()),
    (RequestHandler, "_messages", ()),
    (RequestHandler, "_parser", ()),
    (http_exceptions, "HttpProcessingError", ()),
    (http_parser.HttpRequestParser, "feed_data", ()),
    (RequestHandler, "_read_bufsize", ()),
    (RequestHandler, "_max_msg_queue_size", ()),
    (RequestHandler, "max_field_size", ()),
    (RequestHandler, "writing_paused", ()),
    (RequestHandler, "_paused", ()),
    (RequestHandler, "transport", ()),
    (streams.StreamReader, "total_bytes", ()),
    (RequestHandler, "_current_request", ()),
    (RequestHandler, "_waiter", ()),
    (RequestHandler, "_next_keepalive_close_time", ()),
    (RequestHandler, "_process_keepalive", ()),
    (RequestHandler, "_request_in_progress", ()),
    (RequestHandler, "force_close", ()),
    *(
        (RequestHandler, name, ())
        for name in ("start", "_loop", "_force_close", "_close", "_task_handler", "_upgraded")
    ),
    *((RequestHandler, name, ()) for name in ("_keepalive", "_keepalive_handle", "_keepalive_timeout")),
    *((RequestHandler, name, ()) for name in ("_buffer_paused", "_msg_queue_resume_size", "_handler_waiter")),
    (RequestHandler, "_resume_reading_if_drained", ()),
    (RequestHandler, "finish_response", ("request", "resp", "start_time")),
    (http_parser.HttpRequestParser, "message_consumed", ()),
    (RequestHandler, "data_received", ("data",)),
    (RequestHandler, "resume_reading", ("resume_parser",)),
    (RequestHandler, "_reading_paused", ()),
    (RequestHandler, "handle_error", ("request", "status", "exc", "message")),
    (RequestHandler, "log_exception", ("args", "kw")),
    (
        web_protocol,
        "RequestHandler",
        ("manager", "loop", "access_log", "keepalive_timeout", "max_headers", "auto_decompress"),
    ),
    (web_server, "Server", ("handler", "handler_cancellation")),
    (web_server.Server, "connections", ()),
    (web_server.Server, "shutdown", ("timeout",)),
    (web_request, "BaseRequest", ("message", "payload", "protocol", "payload_writer", "task", "loop")),
    (web_request.BaseRequest, "writer", ()),
    (web_request.BaseRequest, "keep_alive", ()),
    (web_request.BaseRequest, "protocol", ()),
    (web_response.StreamResponse, "force_close", ()),
    (abc.AbstractStreamWriter, "output_size", ()),
    (http_writer.StreamWriter, "write", ("chunk",)),
    (http_writer, "_serialize_headers", ()),
    (helpers, "rfc822_formatted_time", ()),
    (web_response, "REASON_PHRASES", ()),
]


def complaint(owner: type | ModuleType, name: str) -> str:
    where = getattr(owner, "__qualname__", owner.__name__)
    return f"aiohttp {aiohttp.__version__} broke {where}.{name}, which dragoman uses; {RELEASES} have it"


@for_each(("owner", "name", "parameters"), INTERNALS)
def test_aiohttp_still_has_it(owner: type | ModuleType, name: str, parameters: tuple[str, ...]) -> None:
    assert hasattr(owner, name), complaint(owner, name)
    if parameters:
        assert set(inspect.signature(getattr(owner, name)).parameters) >= set(parameters), complaint(owner, name)


def test_a_request_has_the_fields_that_are_set_for_it() -> None:
    """`create_known_request` sets all of them without the class's help, but for the writer, which comes when it is
    asked for."""
    fields = set(web_request.BaseRequest.ATTRS) - web_request.BaseRequest.__dict__.keys()
    known = {"known_head", *(name for name in fields if name.startswith("_"))} - {"_payload_writer"}
    source = inspect.getsource(create_known_request) + inspect.getsource(share_fields)
    assert "_loop" in fields, complaint(web_request.BaseRequest, "_loop")
    made = {line.split('"')[1] for line in source.splitlines() if line.strip().startswith('"_') or "known_head" in line}
    assert made >= known - {"_content_type", "_content_dict", "_stored_content_type"}, complaint(
        web_request.BaseRequest, str(known - made)
    )
