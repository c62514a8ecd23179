"""Errors as providers have sent them: what each means, in every dialect, with a status and in a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply
from dragoman.adapters.changes import Receipt
from dragoman.adapters.error_meanings import COMMON, DECISIVE, SENTENCES, find_meaning, to_snake_case
from dragoman.adapters.faults import KINDS, Fault
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.native_shapes import recognize
from dragoman.contract.quirk_files import load_quirks
from tests.dialects import DIALECTS
from tests.tables import for_each

CTX = Context("actual", Call("POST", "/chat/completions", {}), Receipt(), clock=lambda: 1_800_000_000.0)
BODIES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "fixtures/error_bodies.json").read_bytes())
KINDS_BY_CODE = {row["code"]: row["kind"] for row in BODIES}


def read_quirks() -> Iterator[dict[str, Any]]:
    """The errors among the quirks, with what they mean."""
    for quirk in load_quirks().values():
        if quirk.name.startswith("errors/"):
            code = quirk.expect["code"].strip("^$")
            body = json.loads(quirk.whole) if isinstance(quirk.whole, str) else quirk.whole
            yield {
                "source": quirk.source,
                "status": quirk.status,
                "kind": KINDS_BY_CODE[code],
                "code": code,
                "body": body,
            }


RECORDED = [*BODIES, *read_quirks()]
NAMES = [f"{row['code']}: {row['source']}, {row['status']}" for row in RECORDED]


def read(dialect: str, status: int, body: Any, **headers: str) -> Fault:
    """As the transport gives it: `body` only where the bytes are a JSON object."""
    raw = orjson.dumps(body)
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return dialects[dialect].called["chat"].read_fault(
        Reply(status, body if isinstance(body, dict) else {}, named, raw), CTX
    )  # fmt: skip


@for_each("dialect", DIALECTS)
@for_each("row", RECORDED)
def test_a_recorded_error_has_its_kind_and_code(row: dict[str, Any], dialect: str) -> None:
    fault = read(dialect, row["status"], row["body"])
    assert (fault.kind, fault.code, fault.status) == (row["kind"], row["code"], KINDS[fault.kind][1])
    assert fault.answered == row["status"]


@for_each("row", RECORDED)
def test_the_same_error_in_a_stream_has_its_kind_and_code(row: dict[str, Any]) -> None:
    body = row["body"][0] if isinstance(row["body"], list) else row["body"]
    if row["body"] == {"message": "Payment Required"}:
        body = {**body, "status": row["status"]}
    fault = read_error_object(body)
    assert (fault.kind, fault.code) == (row["kind"], row["code"])


@for_each("row", RECORDED)
def test_no_two_rows_match_one_recorded_error(row: dict[str, Any]) -> None:
    native = recognize(row["body"])
    assert sum(sentence.matches(native.message) for sentence in SENTENCES) <= 1
    by_sentence = find_meaning([], native.message)
    by_code = find_meaning(native.words, "")
    assert by_sentence is None or by_code is None or by_sentence == by_code


def test_every_row_has_a_recorded_error() -> None:
    messages = [recognize(row["body"]).message for row in RECORDED]
    unused = [row.pattern for row in SENTENCES if not any(map(row.matches, messages))]
    assert unused == []


def test_codes_are_written_as_they_are_looked_up() -> None:
    assert [code for code in (*DECISIVE, *COMMON) if to_snake_case(code) != code] == []
    assert DECISIVE.keys() & COMMON.keys() == set()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "max_tokens must be at least 1, got 0.", "code": 400}}),
        (400, {"message": "too many tokens: max tokens must be less than or equal to 4096, the maximum output"}),
        (400, {"error_code": "BAD_REQUEST", "message": "max_tokens (10000) cannot exceed 8192. Please reduce it."}),
        (400, {"error": {"message": "prompt must not be empty", "code": None}}),
    ],
)
def test_a_limit_that_is_not_the_contexts_is_an_invalid_request(status: int, body: Any) -> None:
    fault = read("openai", status, body)
    assert fault.kind == "invalid_request"
    assert fault.code != "context_length_exceeded"


def test_gemini_calls_a_limit_of_a_minute_a_quota() -> None:
    message = (
        "You exceeded your current quota, please check your plan and billing details. For more information on this "
        "error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\nPlease retry in 13.4s."
    )
    fault = read("openai", 429, {"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED"}})
    assert (fault.kind, fault.code, fault.retry_after) == ("rate_limit", "429", 13.4)


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({"x_ms_error_code": "content_filter"}, 400, "content_filter"),
        ({"x_ms_error_code": "DeploymentNotFound"}, 404, "model_not_found"),
        ({"x_amzn_errortype": "AccessDeniedException:http://internal.amazon.com/x"}, 400, "permission"),
        ({"x_amzn_errortype": "ThrottlingException"}, 400, "rate_limit"),
    ],
)
def test_a_code_in_a_header_counts(headers: dict[str, str], status: int, kind: str) -> None:
    assert read("azure", status, {"message": "You cannot use this."}, **headers).kind == kind


def test_a_401_is_about_the_key_whatever_it_says() -> None:
    fault = read("openai", 401, {"error": {"message": "This model's maximum context length is 4 tokens"}})
    assert fault.kind == "upstream_auth_failed"


# status 403: body, kind, a part of the message
FORBIDDEN: list[tuple[Any, str, str]] = [
    ({"error_code": "PERMISSION_DENIED", "message": "The endpoint is disabled due to a rate limit of 0."},
     "permission", "rate limit of 0"),
    ({"error_code": "PERMISSION_DENIED", "message": "User does not have permission 'Query' on endpoint 'chat'."},
     "permission", "permission 'Query'"),
    ({"error": {"type": "forbidden", "message": "Request not allowed"}}, "permission", "Request not allowed"),
    ({"error": {"code": "AccessDenied", "message": "Access denied due to Virtual Network/Firewall rules."}},
     "permission", "Firewall rules"),
    ({"error": {"message": "Access denied. Please check your network settings."}}, "permission", "network settings"),
    ({"error": {"code": 403, "message": "Provider returned error", "metadata": {"raw": "Blocked by the policy of X"}}},
     "permission", "policy of X"),
    ("<html><head><title>Attention Required! | Cloudflare</title></head></html>", "permission", "Cloudflare"),
    ({"type": "error", "error": {"type": "permission_error",
      "message": "Your API key does not have permission to use the specified resource."}}, "upstream_auth_failed", ""),
    ({"error_code": "PERMISSION_DENIED", "message": "Invalid access token dapi012."}, "upstream_auth_failed", ""),
    ({"message": "User: arn:aws:iam::1:user/x is not authorized to perform: bedrock:InvokeModel"},
     "upstream_auth_failed", ""),
    ({"error": {"code": 403, "message": "Requests to this API method are blocked.", "status": "PERMISSION_DENIED"}},
     "permission", "are blocked"),
    ({"error": {"code": "invalid_api_key", "message": "No."}}, "upstream_auth_failed", ""),
    ({"message": "Forbidden"}, "upstream_auth_failed", ""),
    ("<html><head><title>403 Forbidden</title></head></html>", "upstream_auth_failed", ""),
    ({}, "upstream_auth_failed", ""),
    ({"error": {"code": "model_not_found", "message": "Project `p` does not have access to model `gpt-x`."}},
     "model_not_found", "gpt-x"),
]  # fmt: skip
REFUSED = "The provider refused the proxy's own credentials"


@for_each("dialect", DIALECTS)
@for_each(("body", "kind", "text"), FORBIDDEN)
def test_a_403_is_about_the_key_only_if_it_says_so(body: Any, kind: str, text: str, dialect: str) -> None:
    raw = body.encode() if isinstance(body, str) else orjson.dumps(body)
    reply = Reply(403, body if isinstance(body, dict) else {}, {}, raw)
    fault = dialects[dialect].called["chat"].read_fault(reply, CTX)
    assert fault.kind == kind
    assert text in fault.message
    assert fault.message.startswith(REFUSED) == (kind == "upstream_auth_failed")
    assert fault.status == (404 if kind == "model_not_found" else 502)
