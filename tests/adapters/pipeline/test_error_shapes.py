"""The shapes in which servers and gateways write errors: with an error status, with 200, and in a stream."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.adapters.faults import Fault
from tests.tables import for_each

from .conftest import CreatePlan, ReceiveRequest
from .test_attempt import ASKED, FIRST, STREAMED, fault_of

# shape, body, kind and status that the body alone shows, message
SHAPES: list[tuple[str, Any, str, int, str]] = [
    ("OpenAI", {"error": {"message": "m", "type": "rate_limit_error", "param": None}}, "rate_limit", 429, "m"),
    ("vLLM to 0.9", {"object": "error", "message": "m", "type": "BadRequestError", "param": None, "code": 400},
     "invalid_request", 400, "m"),
    ("a code as a string", {"object": "error", "message": "m", "code": "404"}, "not_found", 404, "m"),
    ("a code as a float", {"error": {"message": "m", "code": 429.0}}, "rate_limit", 429, "m"),
    ("code and message", {"code": 503, "message": "m"}, "upstream_unavailable", 503, "m"),
    ("code and msg", {"code": 50501, "msg": "m", "data": None}, "upstream_error", 502, "m"),
    ("status_code", {"message": "m", "status_code": 429}, "rate_limit", 429, "m"),
    ("status_code as a string", {"message": "m", "status_code": "429"}, "rate_limit", 429, "m"),
    ("Azure API Management", {"statusCode": 404, "message": "m"}, "not_found", 404, "m"),
    ("Gemini", [{"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}], "rate_limit", 429, "m"),
    ("Google without a code", {"error": {"message": "m", "status": "UNAVAILABLE"}}, "upstream_unavailable", 503, "m"),
    ("a text", {"error": "m"}, "upstream_error", 502, "m"),
    ("a text and a label", {"error": "m", "error_type": "overloaded"}, "upstream_unavailable", 503, "m"),
    ("a title and a message", {"error": "Too Many Requests", "message": "m", "status": 429}, "rate_limit", 429, "m"),
    ("a list of errors", {"error": [{"message": "m", "code": 404}]}, "not_found", 404, "m"),
    ("FastAPI", {"detail": "m"}, "upstream_error", 502, "m"),
    ("pydantic", {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "Field required", "input": {}}]},
     "upstream_error", 502, "messages: Field required"),
    ("Anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "m"}, "request_id": "r"},
     "upstream_unavailable", 503, "m"),
    ("Cloudflare", {"errors": [{"message": "m", "code": 5006}], "success": False, "result": {}, "messages": []},
     "upstream_error", 502, "m"),
    ("JSON:API", {"errors": [{"status": "429", "title": "Too Many Requests", "detail": "m"}]}, "rate_limit", 429, "m"),
    ("errors as texts", {"errors": ["m", "n"]}, "upstream_error", 502, "m; n"),
    ("Apigee", {"fault": {"faultstring": "m", "detail": {"errorcode": "policies.ratelimit.QuotaViolation"}}},
     "upstream_error", 502, "m"),
    ("Databricks", {"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "m"}, "rate_limit", 429, "m"),
    ("AWS", {"message": "m", "__type": "ThrottlingException"}, "rate_limit", 429, "m"),
    ("AWS with a namespace", {"Message": "m", "__type": "com.aws#ThrottlingException"}, "rate_limit", 429, "m"),
    ("AWS Lambda", {"errorMessage": "m", "errorType": "TimeoutError"}, "upstream_timeout", 504, "m"),
    ("RFC 9457", {"type": "about:blank", "title": "Service Unavailable", "status": 503, "detail": "m"},
     "upstream_unavailable", 503, "m"),
    ("RFC 9457, a title alone", {"type": "https://x.test/p", "title": "m", "status": 404}, "not_found", 404, "m"),
    ("NestJS", {"message": ["m", "n"], "error": "Bad Request", "statusCode": 400}, "invalid_request", 400, "m; n"),
    ("OAuth", {"error": "temporarily_unavailable", "error_description": "m"}, "upstream_unavailable", 503, "m"),
    ("Baidu", {"error_code": 336100, "error_msg": "m"}, "upstream_error", 502, "m"),
    ("MiniMax", {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "m"}}, "upstream_error", 502, "m"),
    ("Volcengine", {"ResponseMetadata": {"RequestId": "r", "Error": {"Code": "InternalError", "Message": "m"}}},
     "upstream_error", 502, "m"),
    ("JSON in a text", {"message": '{"error": {"message": "m", "code": 429}}'}, "rate_limit", 429, "m"),
    ("OpenRouter", {"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "m"}}},
     "upstream_error", 502, "m"),
]  # fmt: skip
NAMES = [row[0] for row in SHAPES]
DIALECTS = ("openai", "databricks", "azure", "mindie")


def read_whole(receive: ReceiveRequest, plan: CreatePlan, status: int, raw: bytes, dialect: str = "openai") -> Fault:
    attempt = receive("openai/chat", ASKED).prepare(plan(dialect))
    attempt.start_reply(0, status, {"content-type": "application/json"})
    attempt.feed(0, raw)
    attempt.close(0)
    return fault_of(attempt)


@for_each("dialect", DIALECTS)
@for_each(("shape", "body", "kind", "status", "message"), SHAPES)
def test_an_error_with_a_status(
    receive: ReceiveRequest, plan: CreatePlan, dialect: str, shape: str, body: Any, kind: str, status: int, message: str
) -> None:
    fault = read_whole(receive, plan, status, orjson.dumps(body), dialect)
    assert (fault.kind, fault.message, fault.answered) == (kind, message, status)


@for_each("dialect", DIALECTS)
@for_each(("shape", "body", "kind", "status", "message"), SHAPES)
def test_an_error_with_status_200_is_a_fault_of_its_own_status(
    receive: ReceiveRequest, plan: CreatePlan, dialect: str, shape: str, body: Any, kind: str, status: int, message: str
) -> None:
    if shape == "Databricks" and dialect != "databricks":
        kind, status = "upstream_error", 502  # without a status its code is a word of that dialect
    fault = read_whole(receive, plan, 200, orjson.dumps(body), dialect)
    assert (fault.kind, fault.message) == (kind, message)
    assert fault.status == status


@for_each("has_begun", [False, True])
@for_each(("shape", "body", "kind", "status", "message"), SHAPES)
def test_an_error_in_a_stream(
    receive: ReceiveRequest,
    plan: CreatePlan,
    shape: str,
    body: Any,
    kind: str,
    status: int,
    message: str,
    has_begun: bool,
) -> None:
    attempt = receive("openai/chat", STREAMED).prepare(plan("databricks" if shape == "Databricks" else "openai"))
    attempt.start_reply(0, 200, {"content-type": "text/event-stream"})
    attempt.feed(0, (FIRST if has_begun else b"") + b"data: " + orjson.dumps(body) + b"\n\n")
    fault = fault_of(attempt)
    assert (fault.kind, fault.message) == (kind, message)


@pytest.mark.parametrize(
    ("status", "raw", "kind", "message"),
    [
        (502, b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>nginx</body></html>", "upstream_error",
         "502 Bad Gateway"),
        (403, b"<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>", "permission",
         "Just a moment..."),
        (429, b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>", "rate_limit",
         "Please reduce your request rate."),
        (503, b"no healthy upstream", "upstream_unavailable", "no healthy upstream"),
        (429, b"Too Many Requests", "rate_limit", "Too Many Requests"),
        (400, b"<400> InternalError.Algo.InvalidParameter: No", "invalid_request",
         "<400> InternalError.Algo.InvalidParameter: No"),
    ],
)  # fmt: skip
def test_an_error_that_is_no_json(
    receive: ReceiveRequest, plan: CreatePlan, status: int, raw: bytes, kind: str, message: str
) -> None:
    fault = read_whole(receive, plan, status, raw)
    assert (fault.kind, fault.message) == (kind, message)


@pytest.mark.parametrize("raw", [b"[]", b"[1]", b'"text"', b"[{}]", b'[{"choices": []}]'])
def test_a_list_without_an_error_is_no_reply(receive: ReceiveRequest, plan: CreatePlan, raw: bytes) -> None:
    fault = read_whole(receive, plan, 200, raw)
    assert (fault.kind, fault.code) == ("upstream_invalid_response", "upstream_truncated")
