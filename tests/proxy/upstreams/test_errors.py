"""The two tables of errors: which fault an exception is, and which faults deserve another try."""

from __future__ import annotations

import ssl
from typing import get_args

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http_exceptions import BadHttpMessage

from dragoman.adapters.faults import KINDS, Fault, Kind
from dragoman.proxy.upstreams.errors import CLIENT_ERRORS, is_unserved, retry_decision, to_fault

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


def test_what_is_no_error_of_the_client() -> None:
    with pytest.raises(TypeError):
        to_fault(KeyError("x"), "p")


def test_a_host_that_has_no_address_is_named() -> None:
    key = ConnectionKey("api.openai.test", 443, True, True, None, None, None, None)
    fault = to_fault(aiohttp.ClientConnectorDNSError(key, OSError(-2, "Name or service not known")), "openai")
    assert fault.message == "openai: cannot resolve api.openai.test (DNS)"


@pytest.mark.parametrize("kind", get_args(Kind))
def test_only_what_another_target_may_answer_is_asked_elsewhere(kind: Kind) -> None:
    wanted = KINDS[kind][0] == "provider" or kind in ("request_timeout", "content_filter")
    assert retry_decision(Fault(kind, "")).next_target is wanted


@pytest.mark.parametrize("kind", ["rate_limit", "permission", "content_filter", "upstream_auth_failed"])
def test_a_provider_that_lacks_credit_or_rights_is_not_asked_again(kind: Kind) -> None:
    for code in (None, "insufficient_quota", "unsupported_country_region_territory"):
        assert retry_decision(Fault(kind, "", code=code)) == (False, True)


def test_only_a_connection_that_failed_is_tried_again() -> None:
    codes = ("upstream_unreachable", "upstream_disconnected", "upstream_tls_failed", "x", None)
    again = {code for code in codes if retry_decision(Fault("upstream_unreachable", "", code=code)).same_target}
    assert again == {"upstream_unreachable", "upstream_disconnected"}
    assert retry_decision(Fault("invalid_request", "", code="upstream_unreachable")) == (False, False)


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
