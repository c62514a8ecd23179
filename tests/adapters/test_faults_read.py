from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply
from dragoman.adapters.changes import Receipt
from dragoman.adapters.databricks.faults import WORDS as DATABRICKS_WORDS
from dragoman.adapters.faults import KINDS, Fault
from dragoman.adapters.mindie.faults import WORDS as MINDIE_WORDS
from dragoman.adapters.native_errors import Words, read_error_object, read_fault, read_stray_text
from dragoman.adapters.openai.faults import write_fault
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import DIALECTS
from tests.tables import for_each

FIXTURES = Path(__file__).parent / "fixtures/errors"
NOW = 1_800_000_000.0
CTX = Context("actual", Call("POST", "/chat/completions", {}), Receipt(), clock=lambda: NOW)

Read = Callable[[Reply, Context], Fault]
READERS: dict[str, Read] = {name: dialects[name].called["chat"].read_fault for name in DIALECTS}
ALL = tuple(READERS.values())
openai, databricks, azure, mindie = (READERS[name] for name in ("openai", "databricks", "azure", "mindie"))


def answer(raw: bytes | str, status: int = 400, **headers: str) -> Reply:
    """As the transport gives it: `body` only where the bytes are a JSON object."""
    raw = raw.encode() if isinstance(raw, str) else raw
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        body = {}
    headers = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, body if isinstance(body, dict) else {}, headers, raw)


def fixture(name: str, status: int, **headers: str) -> Reply:
    file = FIXTURES / name
    return answer((file if file.suffix else file.with_suffix(".json")).read_bytes(), status, **headers)


AUTH = "The provider refused the proxy's own credentials: whoever runs the proxy has to check the provider's key"
PHRASE = "The provider answered with status {} ({}) and gave no reason"
FORM_E = (
    "Extra parameters ['n', 'logprobs'] are not allowed when extra-parameters is not set or set to be 'error'. "
    "Set extra-parameters to 'pass-through' to pass to the model."
)
FORM_HEADER = "Unexpected EXTRA_PARAMETERS option ignore, expected options are ['error', 'drop', 'pass-through']"
NO_ENDPOINT = (
    "The given endpoint does not exist, please retry after checking the specified model and version deployment exists."
)
TOO_LONG = "Received error from databricks-model-serving: The input is longer than the context of the model."
SLOW = "The service at /serving-endpoints is taking too long to process your request."

# reader, fixture, status received -> kind, status, path, code, value, message
SHAPES: list[tuple[Read, str, int, str, int, tuple[str | int, ...], str | None, JsonValue, str]] = [
    (openai, "openai_nested", 400, "invalid_request", 400, ("messages", 0, "role"), "invalid_value", None,
     "Invalid 'messages[0].role': 'wizard' is not one of the supported values."),
    (openai, "openai_unknown_parameter", 400, "extra_parameter", 400, ("frob",), "unknown_parameter", None,
     "Unknown parameter: 'frob'."),
    (openai, "openai_model_not_found", 404, "model_not_found", 404, ("model",), "model_not_found", None,
     "The model `gpt-x` does not exist or you do not have access to it."),
    (openai, "openai_bad_key", 401, "upstream_auth_failed", 502, (), "upstream_auth_failed", None, AUTH),
    (openai, "openai_bad_key", 400, "upstream_auth_failed", 502, (), "upstream_auth_failed", None, AUTH),
    (openai, "openai_quota", 429, "rate_limit", 429, (), "insufficient_quota", None,
     "You exceeded your current quota."),
    (openai, "openai_server_error", 500, "upstream_error", 500, (), None, None,
     "The server had an error while processing your request."),
    (openai, "openai_server_error", 529, "upstream_unavailable", 503, (), None, None,
     "The server had an error while processing your request."),
    (openai, "vllm_flat", 400, "invalid_request", 400, ("temperature",), "400", -1.0,
     "temperature must be non-negative, got -1.0."),
    (openai, "google_list", 400, "invalid_request", 400, (), "400", None, "Request contains an invalid argument."),
    (azure, "azure_422_a", 422, "unsupported_parameter", 422, ("tools",), "parameter_not_supported", "function",
     "The model does not support tools."),
    (azure, "azure_422_b", 422, "unsupported_parameter", 422, ("response_format",), "parameter_not_supported",
     "json_object", "One of the parameters contain invalid values."),
    (azure, "azure_422_c", 422, "unsupported_parameter", 422, ("messages", 0, "content"), "parameter_not_supported",
     "x", "Two of the parameters contain invalid values."),
    (azure, "azure_422_d", 422, "extra_parameter", 422, ("user",), "extra_forbidden", "u-1",
     "user: Extra inputs are not permitted"),
    (azure, "azure_400_e", 400, "extra_parameter", 400, ("n",), None, None, FORM_E),
    (azure, "azure_422_f", 422, "unprocessable", 422, ("messages", 0, "content"), "missing", {"role": "user"},
     "messages[0].content: Field required"),
    (azure, "azure_400_header", 400, "invalid_request", 400, (), None, "ignore", FORM_HEADER),
    (azure, "azure_400_pointer", 400, "extra_parameter", 400, ("max_completion_tokens",), "400", None,
     "Validation error at #/max_completion_tokens: Extra inputs are not permitted"),
    (azure, "azure_content_filter", 400, "content_filter", 400, ("messages",), "content_filter", None,
     "The response was filtered"),
    (azure, "azure_openai_content_filter", 400, "content_filter", 400, ("prompt",), "content_filter", None,
     "The prompt triggered the content management policy."),
    (azure, "azure_generic", 400, "invalid_request", 400, ("max_tokens",), "InvalidRequest", None,
     "The request is invalid."),
    (azure, "azure_401", 401, "upstream_auth_failed", 502, (), "upstream_auth_failed", None, AUTH),
    (azure, "azure_404", 404, "not_found", 404, (), None, None, "Modality not supported."),
    (azure, "azure_429", 429, "rate_limit", 429, (), None, None, "Rate limit of 1 per second exceeded."),
    (azure, "azure_deployment", 404, "model_not_found", 404, (), "model_not_found", None,
     "The API deployment for this resource does not exist."),
    (databricks, "databricks_invalid", 400, "invalid_request", 400, ("temperature",), None, None,
     "temperature must be between 0 and 2"),
    (databricks, "databricks_unknown_field", 400, "extra_parameter", 400, ("inputs",), None, None,
     'Bad request: json: unknown field "inputs"'),
    (databricks, "databricks_missing_endpoint", 404, "model_not_found", 404, (), "model_not_found", None, NO_ENDPOINT),
    (databricks, "databricks_limit", 429, "rate_limit", 429, (), None, None,
     "REQUEST_LIMIT_EXCEEDED: Exceeded workspace rate limit."),
    (databricks, "databricks_denied", 403, "upstream_auth_failed", 502, (), "upstream_auth_failed", None, AUTH),
    (databricks, "databricks_external", 400, "invalid_request", 400, (), None, None, TOO_LONG),
    (databricks, "databricks_text.txt", 503, "upstream_unavailable", 503, (), None, None, SLOW),
    (databricks, "databricks_pre.html", 503, "upstream_unavailable", 503, (), None, None, 'Endpoint is "scaling" up'),
    (databricks, "gateway_title.html", 502, "upstream_error", 502, (), None, None, "502 Bad Gateway"),
    (databricks, "gateway_bare.html", 500, "upstream_error", 500, (), None, None,
     PHRASE.format(500, "Internal Server Error")),
    (mindie, "mindie_top_p", 422, "unprocessable", 422, ("top_p",), None, 0,
     "Parameter top_p must be in (0.0,1.0], got 0."),
    (mindie, "mindie_type_key", 422, "unprocessable", 422, ("model",), None, None,
     "Request param model must be string"),
    (mindie, "mindie_model", 422, "model_not_found", 404, ("model",), "model_not_found", None, "Model not found"),
    (mindie, "mindie_model_named", 404, "model_not_found", 404, ("model",), "model_not_found", None,
     "Model qwen9 not found."),
    (mindie, "mindie_got_model", 422, "model_not_found", 404, ("model",), "model_not_found", None,
     "Got model qwen9, but not found in server"),
    (mindie, "mindie_generation", 424, "invalid_request", 424, (), None, None, "Failed to enqueue the request."),
    (mindie, "mindie_incomplete", 500, "upstream_error", 500, (), None, None, "Engine callback timeout."),
    (mindie, "mindie_oversize", 413, "too_large", 413, (), None, None,
     "Request body too large. Maximum allowed size is 40MB."),
    (mindie, "mindie_exception.txt", 500, "upstream_error", 500, (), None, None, "Server internal error"),
    (openai, "wrapped_message", 400, "invalid_request", 400, ("messages",), "context_length_exceeded", None,
     "Too long."),
    (openai, "wrapped_detail", 400, "invalid_request", 400, ("voice",), None, None, "No such voice."),
]  # fmt: skip


@for_each(("read", "name", "received", "kind", "status", "path", "code", "value", "message"), SHAPES)
def test_native_shapes(
    read: Read,
    name: str,
    received: int,
    kind: str,
    status: int,
    path: tuple[str | int, ...],
    code: str | None,
    value: JsonValue,
    message: str,
) -> None:
    fault = read(fixture(name, received), CTX)
    assert (fault.kind, fault.status, fault.path) == (kind, status, path)
    assert (fault.code, fault.value, fault.message) == (code, value, message)


def test_every_fixture_is_read_by_a_test() -> None:
    assert {file.name.removesuffix(".json") for file in FIXTURES.iterdir()} == {row[1] for row in SHAPES}


@for_each("read", ALL)
@for_each(("owner", "name", "received"), [row[:3] for row in SHAPES])
def test_every_dialect_reads_every_shape(read: Read, owner: Read, name: str, received: int) -> None:
    mine, theirs = read(fixture(name, received), CTX), owner(fixture(name, received), CTX)
    assert (mine.message, mine.path, mine.value, mine.provider_code) == (
        theirs.message, theirs.path, theirs.value, theirs.provider_code
    )  # fmt: skip


@for_each(
    ("status", "kind", "becomes"),
    [
        (400, "invalid_request", 400),
        (401, "upstream_auth_failed", 502),
        (402, "rate_limit", 429),
        (403, "upstream_auth_failed", 502),
        (404, "not_found", 404),
        (408, "upstream_timeout", 504),
        (409, "invalid_request", 409),
        (413, "too_large", 413),
        (422, "unprocessable", 422),
        (424, "invalid_request", 424),
        (429, "rate_limit", 429),
        (499, "invalid_request", 499),
        (500, "upstream_error", 500),
        (501, "upstream_error", 501),
        (502, "upstream_error", 502),
        (503, "upstream_unavailable", 503),
        (504, "upstream_timeout", 504),
        (529, "upstream_unavailable", 503),
        (598, "upstream_error", 598),
        (200, "upstream_error", 502),
        (999, "upstream_error", 502),
        (0, "upstream_error", 502),
    ],
)
@for_each("read", ALL)
def test_empty_answers_go_by_their_status(read: Read, status: int, kind: str, becomes: int) -> None:
    fault = read(answer(b"", status), CTX)
    assert (fault.kind, fault.status) == (kind, becomes)
    assert fault.message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_never_followed(status: int) -> None:
    fault = databricks(answer("<html><title>Log in</title>", status, location="https://elsewhere/?t=secret"), CTX)
    assert (fault.kind, fault.status, fault.code) == ("upstream_invalid_response", 502, "upstream_redirect")
    assert str(status) in fault.message
    assert "base_url" in fault.message
    assert "secret" not in fault.message


@pytest.mark.parametrize(
    ("body", "words", "kind", "status"),
    [
        ({"error": {"message": "m", "status": 429}}, None, "rate_limit", 429),
        ({"error": {"message": "m", "code": 503}}, None, "upstream_unavailable", 503),
        ({"error": {"message": "m", "code": "404"}}, None, "not_found", 404),
        ({"error": {"message": "m", "code": 7}}, None, "upstream_error", 502),
        ({"error": {"message": "m", "type": "invalid_request_error"}}, None, "invalid_request", 400),
        ({"error": {"message": "m", "type": "server_error", "code": None}}, None, "upstream_error", 502),
        ({"error": {"message": "m", "type": "rate_limit_error"}}, None, "rate_limit", 429),
        ({"error": {"message": "m", "code": "content_filter"}}, None, "content_filter", 400),
        ({"error": {"message": "m", "type": "TimeoutError"}}, None, "upstream_timeout", 504),
        ({"error": {"message": "m", "type": "NotFoundError"}}, None, "not_found", 404),
        ({"error": "Model x not found."}, None, "model_not_found", 404),
        ({"error": "m", "status": 404}, None, "not_found", 404),
        ({"error": "m"}, None, "upstream_error", 502),
        ({"error": None}, None, "upstream_error", 502),
        ({"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "m"}, DATABRICKS_WORDS, "rate_limit", 429),
        ({"error_code": "PERMISSION_DENIED", "message": "m"}, DATABRICKS_WORDS, "permission", 502),
        ({"error_code": "DEADLINE_EXCEEDED", "message": "m"}, DATABRICKS_WORDS, "upstream_timeout", 504),
        ({"error": "m", "error_type": "Input Validation Error"}, MINDIE_WORDS, "unprocessable", 422),
        ({"error": "m", "error_type": "Service Unavailable"}, MINDIE_WORDS, "upstream_unavailable", 503),
        ({"error": "m", "error_type": "Incomplete Generation"}, MINDIE_WORDS, "upstream_error", 502),
    ],
)
def test_errors_inside_a_success(body: JsonObject, words: Words, kind: str, status: int) -> None:
    fault = read_error_object(body, 200, words)
    assert (fault.kind, fault.status) == (kind, status)
    whole = read_fault(answer(json.dumps(body), 200), CTX, words)
    assert (whole.kind, whole.status, whole.message) == (kind, status, fault.message)


@pytest.mark.parametrize(
    ("text", "kind", "status", "code", "words"),
    [
        (
            b"Engine callback timeout: server tokenTimeout",
            "upstream_timeout",
            504,
            "upstream_timeout",
            "server tokenTimeout",
        ),
        (b"Failed to get engine response", "upstream_error", 500, "upstream_error", "engine response"),
        (b"oops " + b"x" * 500, "upstream_invalid_response", 502, "upstream_invalid_event", "oops xxx"),
        (
            b"<html><title>502 Bad Gateway</title>",
            "upstream_invalid_response",
            502,
            "upstream_invalid_event",
            "502 Bad",
        ),
        (b"\xff\xfe", "upstream_invalid_response", 502, "upstream_invalid_event", "event"),
        (b"", "upstream_invalid_response", 502, "upstream_invalid_event", "event"),
    ],
)
def test_stray_texts(text: bytes, kind: str, status: int, code: str, words: str) -> None:
    fault = read_stray_text(text)
    assert (fault.kind, fault.status, fault.code) == (kind, status, code)
    assert words in fault.message
    assert len(fault.message) < 300


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry_after": "3"}, 3.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after": "1000000"}, 3600.0),
        ({"retry_after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        ({"retry_after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry_after": "Fri, 15 Jan 2038 08:00:30 GMT"}, 3600.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": ""}, None),
        ({"retry_after": "-1"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": "Fri, 99 Jan 9999 99:00:30 GMT"}, None),
        ({"retry_after": "9", "retry_after_ms": "1500"}, 1.5),
        ({"retry_after": "9", "retry_after_ms": "soon"}, 9.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert openai(answer(b"", 429, **headers), CTX).retry_after == seconds


def test_nothing_of_a_refused_key_comes_through() -> None:
    fault = openai(fixture("openai_bad_key", 401), CTX)
    written = write_fault(fault, CTX)
    assert b"sk-" not in orjson.dumps([written.body, dict(written.headers)])
    assert fault.provider_code == "invalid_api_key"


def test_bytes_that_are_no_text() -> None:
    fault = openai(answer(b"\x1f\x8b\xff\xff", 500), CTX)
    assert (fault.kind, fault.status, fault.code) == ("upstream_invalid_response", 502, "upstream_invalid_body")
    fault = openai(answer(b"\x1f\x8b\xff\xff", 400), CTX)
    assert (fault.status, fault.message) == (400, PHRASE.format(400, "Bad Request"))


def test_long_errors_are_cut() -> None:
    fault = openai(
        answer(json.dumps({"error": {"message": "é" * 5000, "code": "c" * 5000, "junk": ["x" * 5000]}})), CTX
    )
    assert len(fault.message.encode()) <= 2048
    assert len(fault.code or "") <= 100
    assert len(orjson.dumps(fault.details)) <= 2048


def test_details_keep_a_small_body_whole() -> None:
    reply = fixture("azure_422_b", 422)
    assert azure(reply, CTX).details == reply.body


def test_html_inside_json_is_not_forwarded() -> None:
    fault = openai(
        answer(json.dumps({"error": {"message": "<!DOCTYPE html><title>Oops</title><p>10.0.0.1"}}), 500), CTX
    )
    assert fault.message == "Oops"


def test_an_error_event_as_the_whole_body() -> None:
    fault = openai(answer(b'data: {"error":{"message":"m","type":"t","param":"n","code":null}}\n\n', 400), CTX)
    assert (fault.message, fault.path) == ("m", ("n",))


def test_hostile_paths() -> None:
    deep: JsonObject = {"message": "m"}
    for _ in range(50):
        deep = {"error": deep}
    for body in (
        {"error": {"message": "m", "param": "[" + "9" * 5000 + "]"}},
        {"error": {"message": "m", "param": "a sentence, not a path"}},
        {"detail": [{"loc": ["body", None, True, {"a": 1}, 1.5], "msg": "m"}]},
        {"detail": {"loc": 5, "msg": "m"}},
        deep,
    ):
        assert azure(answer(json.dumps(body), 422), CTX).path == ()


def test_an_azure_422_gives_its_parameter_and_value() -> None:
    fault = azure(fixture("azure_422_b", 422, x_ms_error_code="parameter_not_supported"), CTX)
    written = write_fault(fault, CTX)
    assert written.status == 422
    error = written.body["error"]
    assert (error["param"], error["code"]) == ("response_format", "parameter_not_supported")
    assert error["message"] == "One of the parameters contain invalid values. (got json_object)"
    assert error["details"]["value"] == "json_object"


def test_an_azure_422_names_a_field_that_is_not_permitted() -> None:
    written = write_fault(azure(fixture("azure_422_d", 422), CTX), CTX)
    assert written.status == 422
    assert written.body["error"]["param"] == "user"
    assert written.body["error"]["code"] == "extra_forbidden"


def test_an_azure_400_names_all_extra_parameters() -> None:
    written = write_fault(azure(fixture("azure_400_e", 400), CTX), CTX)
    assert (written.status, written.body["error"]["param"]) == (400, "n")
    assert "'n'" in written.body["error"]["message"]
    assert "'logprobs'" in written.body["error"]["message"]


def test_mindie_answers_that_are_no_json() -> None:
    fault = mindie(answer("Server internal error", 500, content_type="application/json"), CTX)
    written = write_fault(fault, CTX)
    assert (written.status, written.body["error"]["type"]) == (500, "server_error")
    written = write_fault(mindie(answer(b"", 404), CTX), CTX)
    assert (written.status, written.body["error"]["type"]) == (404, "invalid_request_error")
    assert written.body["error"]["message"] == PHRASE.format(404, "Not Found")


def test_databricks_limits_and_errors_of_external_models() -> None:
    written = write_fault(databricks(fixture("databricks_limit", 429, retry_after="3"), CTX), CTX)
    assert (written.status, written.headers["retry-after"]) == (429, "3")
    assert written.body["error"]["type"] == "rate_limit_error"
    written = write_fault(databricks(fixture("databricks_external", 400), CTX), CTX)
    assert "longer than the context" in written.body["error"]["message"]


FACTS = ["message", "code", "type", "param", "status", "target", "loc", "input", "value", "msg"]
FRAMES = ["error", "detail", "details", "error_code", "error_type", "external_model_message", "innererror"]
KEYS = st.sampled_from(FACTS + FRAMES)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
NESTED = st.recursive(
    LEAVES | st.sampled_from(["body", "400", "model x not found", '{"detail": [{"loc": ["body", "n"]}]}', "[[["]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)
STATUSES = st.integers(-1, 1000) | st.sampled_from(sorted({status for _, status in KINDS.values()}))


def check(fault: Fault) -> None:
    assert fault.message.strip()
    assert 400 <= fault.status <= 599
    written = write_fault(fault, CTX)
    assert orjson.loads(orjson.dumps(written.body))["error"]["message"]


@given(st.binary(max_size=60), STATUSES)
def test_any_bytes_are_understood(raw: bytes, status: int) -> None:
    for read in ALL:
        check(read(answer(raw, status), CTX))
    check(read_stray_text(raw))


@given(NESTED, STATUSES)
def test_any_json_is_understood(body: JsonValue, status: int) -> None:
    for read in ALL:
        check(read(answer(json.dumps(body), status), CTX))


@given(st.dictionaries(KEYS, NESTED, max_size=5), STATUSES)
def test_any_object_is_understood(body: JsonObject, status: int) -> None:
    check(read_error_object(body, status, DATABRICKS_WORDS))
    check(azure(Reply(status, body), CTX))


@given(st.dictionaries(st.text(max_size=15), st.text(max_size=15), max_size=2), st.text(max_size=30))
def test_any_headers_are_understood(headers: dict[str, str], text: str) -> None:
    seconds = openai(Reply(429, {}, {**headers, "retry-after": text}), CTX).retry_after
    assert seconds is None or 0 <= seconds <= 3600
