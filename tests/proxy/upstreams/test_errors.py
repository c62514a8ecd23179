"""The table of errors: which fault an exception is."""

from __future__ import annotations

import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http_exceptions import BadHttpMessage

from dragoman.adapters.faults import Fault
from dragoman.proxy.upstreams.aiohttp_client import NewConnectionLost
from dragoman.proxy.upstreams.errors import CLIENT_ERRORS, is_unserved, to_fault

EXCEPTIONS: list[tuple[BaseException, str, int]] = [
    (aiohttp.ConnectionTimeoutError("http://secret"), "upstream_connect_timeout", 504),
    (aiohttp.SocketTimeoutError("http://secret"), "upstream_timeout", 504),
    (aiohttp.ServerDisconnectedError(), "upstream_disconnected", 502),
    (aiohttp.ClientPayloadError("secret"), "upstream_truncated", 502),
    (aiohttp.ClientResponseError(None, (), status=400, message="secret"), "upstream_protocol_error", 502),  # type: ignore[arg-type]
    (aiohttp.ClientOSError(104, "Connection reset by peer"), "upstream_disconnected", 502),
    (aiohttp.ClientConnectionError("secret"), "upstream_protocol_error", 502),
    (BadHttpMessage("secret"), "upstream_protocol_error", 502),
    (ssl.SSLError(1, "secret"), "upstream_tls_failed", 502),
    (TimeoutError(), "upstream_timeout", 504),
    (ConnectionResetError(104, "reset"), "upstream_disconnected", 502),
]


@pytest.mark.parametrize(("error", "code", "status"), EXCEPTIONS)
def test_faults_of_exceptions(error: BaseException, code: str, status: int) -> None:
    assert isinstance(error, CLIENT_ERRORS)
    fault = to_fault(error, "p")
    assert (fault.code, fault.status, fault.owner) == (code, status, "provider")
    assert fault.message.startswith("p: ")


def test_an_alert_after_the_handshake() -> None:
    error = aiohttp.ClientOSError(1, "x")
    error.__cause__ = ssl.SSLError(1, "certificate required")
    assert to_fault(error, "p").code == "upstream_tls_failed"


def test_a_new_connection_that_breaks_may_have_carried_the_request() -> None:
    lost = NewConnectionLost()
    lost.__cause__ = aiohttp.ClientOSError(104, "Connection reset by peer")
    fault, pooled = to_fault(lost, "p"), to_fault(lost.__cause__, "p")
    assert (fault.message, fault.code) == (pooled.message, pooled.code)
    assert (fault.may_have_begun, pooled.may_have_begun) == (True, False)


def test_what_is_no_error_of_the_client() -> None:
    with pytest.raises(TypeError):
        to_fault(KeyError("x"), "p")


def test_a_host_that_has_no_address_is_named() -> None:
    key = ConnectionKey("api.openai.test", 443, True, True, None, None, None, None)
    fault = to_fault(aiohttp.ClientConnectorDNSError(key, OSError(-2, "Name or service not known")), "openai")
    assert fault.message == "openai: cannot resolve api.openai.test (DNS)"


@pytest.mark.parametrize(
    ("fault", "is_about_protocol"),
    [
        (Fault("not_found", "Not Found", answered=404), True),
        (Fault("not_found", "Not Found", ("model",), answered=404), True),
        (Fault("not_found", "No such response", ("previous_response_id",), answered=404), False),
        (Fault("model_not_found", "No such model", ("model",), answered=404), False),
        (Fault("invalid_request", "Method Not Allowed", answered=405), True),
        (Fault("unsupported_parameter", "no embeddings", code="unsupported_protocol", answered=400), True),
        (Fault("unsupported_parameter", "no seed", ("seed",), answered=400), False),
        (Fault("extra_parameter", 'unknown field "prompt"', ("prompt",), answered=400), True),
        (Fault("extra_parameter", 'unknown field "seed"', ("seed",), answered=400), False),
        (Fault("upstream_error", "Not Implemented", answered=501), False),
    ],
)
def test_which_errors_say_that_a_protocol_is_not_served(fault: Fault, is_about_protocol: bool) -> None:
    assert is_unserved(fault) is is_about_protocol
