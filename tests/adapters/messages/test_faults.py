"""Every fault in Anthropic's form: its status, its type and its sentence."""

from __future__ import annotations

import anthropic
import pytest

from dragoman.adapters.call import Call, Context
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import KINDS, Fault, Kind
from dragoman.adapters.messages.faults import write_fault
from dragoman.adapters.validation import load_validator

CTX = Context("actual", Call("POST", "/v1/messages", {}), Receipt(), request_id="req-1")
DOCUMENTED = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error",
    529: "overloaded_error",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_valid_form(kind: Kind) -> None:
    reply = write_fault(Fault(kind, "It is wrong", ("messages", 0, "content")), CTX)
    assert load_validator("anthropic/messages.error", "documented").accepts(reply.body)
    assert reply.body["request_id"] == "req-1"
    assert reply.body["error"]["type"] == DOCUMENTED.get(reply.status, reply.body["error"]["type"])
    assert reply.body["error"]["message"] == "messages.0.content: It is wrong"


@pytest.mark.parametrize(
    ("fault", "status", "told"),
    [
        (Fault("overloaded", "busy"), 529, "overloaded_error"),
        (Fault("upstream_unavailable", "busy", code="server_is_overloaded"), 529, "overloaded_error"),
        (Fault("upstream_unavailable", "busy", answered=529), 529, "overloaded_error"),
        (Fault("upstream_unavailable", "down"), 503, "api_error"),
        (Fault("rate_limit", "no credit", code="insufficient_quota"), 402, "billing_error"),
        (Fault("upstream_error", "oops", status=502), 502, "api_error"),
        (Fault("upstream_auth_failed", "refused"), 502, "api_error"),
    ],
)
def test_what_anthropic_tells_apart(fault: Fault, status: int, told: str) -> None:
    reply = write_fault(fault, CTX)
    assert (reply.status, reply.body["error"]["type"]) == (status, told)


def test_a_fault_with_several_reasons_says_all() -> None:
    others = (Fault("unsupported_parameter", "stop cannot be served", ("stop_sequences",)),)
    reply = write_fault(Fault("unsupported_parameter", "top_k cannot be served", ("top_k",), others=others), CTX)
    assert reply.body["error"]["message"] == (
        "top_k cannot be served (and 1 more reason: stop_sequences: stop cannot be served)"
    )


def test_paths_in_sentences_have_dots() -> None:
    path = ("messages", 0, "content", 1)
    reply = write_fault(Fault("extra_parameter", "messages[0].content[1] is not permitted", path), CTX)
    assert reply.body["error"]["message"] == "messages.0.content.1 is not permitted"


def test_a_long_conversation_is_said_in_the_words_that_agents_look_for() -> None:
    fault = Fault("invalid_request", "Too many tokens", ("messages",), code="context_length_exceeded")
    assert write_fault(fault, CTX).body["error"]["message"] == "prompt is too long: messages: Too many tokens"
    said = Fault("invalid_request", "prompt is too long: 9 tokens > 8 maximum", code="context_length_exceeded")
    assert write_fault(said, CTX).body["error"]["message"] == "prompt is too long: 9 tokens > 8 maximum"


def test_what_fails_again_is_not_tried_again() -> None:
    assert write_fault(Fault("upstream_auth_failed", "refused"), CTX).headers["x-should-retry"] == "false"
    limited = write_fault(Fault("rate_limit", "slow down", retry_after=1.2), CTX)
    assert limited.headers["retry-after"] == "2" and "x-should-retry" not in limited.headers


def test_the_package_has_a_class_for_every_status() -> None:
    """`anthropic` raises the base class for a status that it does not know."""
    known = {one.status_code for one in vars(anthropic).values() if isinstance(getattr(one, "status_code", None), int)}
    statuses = {write_fault(Fault(kind, "x"), CTX).status for kind in KINDS}
    assert {status for status in statuses if status < 500} - known <= {405, 415}
