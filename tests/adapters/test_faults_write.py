from __future__ import annotations

from typing import Any, get_args
from unittest.mock import ANY

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.azure import faults as azure
from dragoman.adapters.call import Call, Context, Reply
from dragoman.adapters.changes import Receipt
from dragoman.adapters.databricks import faults as databricks
from dragoman.adapters.faults import KINDS, Fault, Kind
from dragoman.adapters.mindie import faults as mindie
from dragoman.adapters.openai import faults as openai
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.tables import for_each

CTX = Context("actual", Call("POST", "/chat/completions", {}), Receipt(), clock=lambda: 0.0)
DOCUMENTED = Context("documented", Call("POST", "/chat/completions", {}), Receipt())
DIALECTS: dict[str, Any] = {"openai": openai, "databricks": databricks, "azure": azure, "mindie": mindie}

# kind: openai status, type, code; databricks status, error_code; azure status, code; mindie status, error_type
TABLE: dict[Kind, tuple[int, str, str | None, int, str, int, str, int, str]] = {
    "invalid_request": (
        400, "invalid_request_error", None, 400, "INVALID_PARAMETER_VALUE", 400, "bad_request",
        422, "Input Validation Error"),
    "unsupported_parameter": (
        400, "invalid_request_error", "unsupported_parameter", 400, "INVALID_PARAMETER_VALUE",
        422, "parameter_not_supported", 422, "Input Validation Error"),
    "extra_parameter": (
        400, "invalid_request_error", "unknown_parameter", 400, "BAD_REQUEST", 400, "extra_parameter",
        422, "Input Validation Error"),
    "unprocessable": (
        422, "invalid_request_error", None, 400, "INVALID_PARAMETER_VALUE", 422, "unprocessable_content",
        422, "Input Validation Error"),
    "auth": (
        401, "invalid_request_error", "invalid_api_key", 401, "UNAUTHENTICATED", 401, "unauthorized",
        401, "Unauthorized"),
    "forbidden": (
        403, "invalid_request_error", "forbidden", 403, "PERMISSION_DENIED", 403, "forbidden",
        403, "Bad Request"),
    "permission": (
        502, "permission_error", "permission_denied", 502, "PERMISSION_DENIED", 502, "permission_denied",
        502, "Incomplete Generation"),
    "not_found": (
        404, "invalid_request_error", "not_found", 404, "RESOURCE_DOES_NOT_EXIST", 404, "not_found",
        404, "NotFoundError"),
    "model_not_found": (
        404, "invalid_request_error", "model_not_found", 404, "RESOURCE_DOES_NOT_EXIST", 404, "model_not_found",
        422, "Input Validation Error"),
    "method_not_allowed": (
        405, "invalid_request_error", "method_not_allowed", 405, "BAD_REQUEST", 405, "method_not_allowed",
        405, "Bad Request"),
    "request_timeout": (
        408, "invalid_request_error", "request_timeout", 408, "DEADLINE_EXCEEDED", 408, "request_timeout",
        408, "Bad Request"),
    "too_large": (
        413, "invalid_request_error", "request_too_large", 413, "REQUEST_TOO_LARGE", 413, "request_too_large",
        413, "Bad Request"),
    "unsupported_media_type": (
        415, "invalid_request_error", "unsupported_media_type", 415, "BAD_REQUEST", 415, "unsupported_media_type",
        415, "Bad Request"),
    "content_filter": (
        400, "invalid_request_error", "content_filter", 400, "BAD_REQUEST", 400, "content_filter",
        424, "Generation Error"),
    "rate_limit": (
        429, "rate_limit_error", "rate_limit_exceeded", 429, "REQUEST_LIMIT_EXCEEDED", 429, "too_many_requests",
        503, "Service Unavailable"),
    "upstream_timeout": (
        504, "server_error", "upstream_timeout", 504, "DEADLINE_EXCEEDED", 504, "upstream_timeout",
        500, "Incomplete Generation"),
    "upstream_unavailable": (
        503, "server_error", "upstream_unavailable", 503, "TEMPORARILY_UNAVAILABLE", 503, "upstream_unavailable",
        503, "Service Unavailable"),
    "upstream_unreachable": (
        502, "server_error", "upstream_unreachable", 502, "INTERNAL_ERROR", 502, "upstream_unreachable",
        500, "Incomplete Generation"),
    "upstream_invalid_response": (
        502, "server_error", "bad_upstream", 502, "INTERNAL_ERROR", 502, "bad_upstream", 500, "Incomplete Generation"),
    "upstream_auth_failed": (
        502, "server_error", "upstream_auth_failed", 502, "INTERNAL_ERROR", 502, "upstream_auth_failed",
        502, "Incomplete Generation"),
    "upstream_error": (
        500, "server_error", "upstream_error", 500, "INTERNAL_ERROR", 500, "upstream_error",
        500, "Incomplete Generation"),
    "overloaded": (
        503, "server_error", "overloaded", 503, "TEMPORARILY_UNAVAILABLE", 503, "overloaded",
        503, "Service Unavailable"),
    "internal": (
        500, "server_error", "internal_error", 500, "INTERNAL_ERROR", 500, "internal_error",
        500, "Incomplete Generation"),
}  # fmt: skip


def test_the_table_is_whole() -> None:
    assert TABLE.keys() == KINDS.keys() == set(get_args(Kind))


@pytest.mark.parametrize("kind", KINDS)
def test_openai(kind: Kind) -> None:
    status, label, code = TABLE[kind][:3]
    written = openai.write_fault(Fault(kind, "Said so", ("messages", 0)), CTX)
    assert written.status == status
    assert written.body == {"error": {"message": "Said so", "type": label, "param": "messages[0]", "code": code}}
    final = {"x-should-retry": "false"} if kind in ("upstream_auth_failed", "permission") else {}
    assert written.headers == {"content-type": "application/json"} | final


@pytest.mark.parametrize("kind", KINDS)
def test_databricks(kind: Kind) -> None:
    status, word = TABLE[kind][3:5]
    written = databricks.write_fault(Fault(kind, "Said so", ("messages", 0)), CTX)
    beginning = 'Bad request: json: unknown field "messages": ' if kind == "extra_parameter" else ""
    body = {"error_code": word, "message": f"{beginning}messages[0]: Said so"}
    assert (written.status, written.body) == (status, body)


@pytest.mark.parametrize("kind", KINDS)
def test_azure(kind: Kind) -> None:
    status, code = TABLE[kind][5:7]
    written = azure.write_fault(Fault(kind, "Said so", ("messages", 0), "wizard"), CTX)
    assert (written.status, written.headers["x-ms-error-code"]) == (status, code)
    message = "Said so" if kind == "extra_parameter" else "Said so (got wizard)"
    error = {"code": code, "message": message, "status": status, "param": "messages[0]"}
    error["details"] = [{"loc": ["body", "messages", "0"], "type": code, "msg": message, "input": "wizard"}]
    wanted: JsonObject = {"error": error, "status": status, "message": message}
    if status not in (401, 404, 429):
        wanted["code"] = code
        if status == 422:
            wanted["detail"] = {"loc": ["body", "messages", "0"], "value": "wizard"}
        else:
            wanted["param"] = "messages[0]"
        if kind == "extra_parameter":
            wanted["detail"] = wanted["message"]
    assert written.body == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_azure_documented_has_a_title_as_its_error(kind: Kind) -> None:
    fault = Fault(kind, "Said so", ("messages", 0), "wizard")
    body, flat = azure.write_fault(fault, CTX).body, azure.write_fault(fault, DOCUMENTED).body
    assert isinstance(flat.pop("error"), str)
    assert body.items() >= flat.items()
    assert body.keys() - flat.keys() == ({"error", "detail"} if kind == "extra_parameter" else {"error"})


def test_azure_gives_no_details_without_a_path_and_no_large_input() -> None:
    assert "details" not in azure.error_body(Fault("internal", "No"))["error"]
    large = azure.error_body(Fault("invalid_request", "No", ("n",), ["x" * 4000]))
    assert large["error"]["details"] == [{"loc": ["body", "n"], "type": "bad_request", "msg": "No", "input": None}]


@pytest.mark.parametrize("kind", KINDS)
def test_mindie(kind: Kind) -> None:
    status, label = TABLE[kind][7:]
    written = mindie.write_fault(Fault(kind, "Said so", ("messages", 0)), CTX)
    beginning = "Model not found. " if kind == "model_not_found" else ""
    body = {"error": f"{beginning}messages[0]: Said so", "error_type": label}
    assert (written.status, written.body) == (status, body)


@for_each("dialect", DIALECTS)
@for_each("kind", KINDS)
def test_bodies_fit_the_documented_schema(dialect: str, kind: Kind) -> None:
    for path, value in (((), None), (("messages", 0, "role"), "wizard"), (("n",), [1, {"a": None}])):
        written = DIALECTS[dialect].write_fault(Fault(kind, "Said so", path, value), DOCUMENTED)
        assert list(load_validator(f"{dialect}/chat.error").violations(written.body)) == []


@pytest.mark.parametrize("code", ["empty_body", "invalid_json", "duplicate_key", "invalid_utf8"])
def test_databricks_calls_bad_json_a_bad_request(code: str) -> None:
    fault = Fault("invalid_request", "The body is wrong", code=code)
    assert databricks.write_fault(fault, CTX).body["error_code"] == "BAD_REQUEST"


def test_a_finer_code_wins() -> None:
    fault = Fault("invalid_request", "The body is wrong", code="invalid_json")
    assert openai.error_body(fault)["error"]["code"] == "invalid_json"
    assert azure.error_body(fault)["code"] == "invalid_json"
    assert azure.write_fault(fault, CTX).headers["x-ms-error-code"] == "invalid_json"


def test_a_kept_status_stays_where_the_dialect_has_it() -> None:
    fault = Fault("unsupported_parameter", "No", ("n",), status=422)
    assert openai.write_fault(fault, CTX).status == 422
    assert databricks.write_fault(fault, CTX).status == 400
    fault = Fault("upstream_error", "No", status=501)
    assert [DIALECTS[name].write_fault(fault, CTX).status for name in DIALECTS] == [501, 501, 501, 500]


@for_each(("status", "told"), [(500, 500), (501, 501), (502, 502), (503, 503), (504, 504), (529, 503)])
@for_each("dialect", DIALECTS)
def test_a_5xx_of_the_provider_is_kept(dialect: str, status: int, told: int) -> None:
    fault = dialects["openai"].called["chat"].read_fault(Reply(status, {}, {}, b'{"error": {"message": "no"}}'), CTX)
    assert DIALECTS[dialect].write_fault(fault, CTX).status == told
    unreadable = dialects["openai"].called["chat"].read_fault(Reply(status, {}, {}, b"\xff\xfe"), CTX)
    assert DIALECTS[dialect].write_fault(unreadable, CTX).status == 502


def test_mindie_clients_get_no_gateway_status_of_the_proxys_own() -> None:
    for kind in ("upstream_timeout", "upstream_invalid_response", "upstream_unreachable"):
        assert mindie.write_fault(Fault(kind, "No"), CTX).status == 500


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (Fault("invalid_request", "x", code="invalid_json"), "Failed to parse request context to json: x"),
        (Fault("model_not_found", "x", ("model",)), "Model not found. model: x"),
        (Fault("invalid_request", "x", ("model",), code="missing_required_parameter"), "or model null. model: x"),
        (Fault("invalid_request", "x", ("model",), None, code="invalid_type"), "or model null. model: x"),
        (Fault("invalid_request", "x", ("model",), 3, code="invalid_type"), "must be string. model: x (got 3)"),
        (Fault("invalid_request", "x", ("messages",), code="array_below_min_length"), "arr is empty: messages: x"),
        (Fault("model_not_found", "Model not found.", ()), "Model not found."),
    ],
)
def test_mindies_own_sentences(fault: Fault, sentence: str) -> None:
    said = mindie.error_body(fault)["error"]
    assert said.endswith(sentence)
    assert said.count("Model not found.") <= 1


def test_databricks_names_an_unknown_field_as_its_servers_do() -> None:
    fault = Fault("extra_parameter", "messages[0].foo is not a known parameter", ("messages", 0, "foo"), 1)
    said = 'Bad request: json: unknown field "foo": messages[0].foo is not a known parameter'
    assert databricks.error_body(fault) == {"error_code": "BAD_REQUEST", "message": said}
    theirs = Fault("extra_parameter", 'Bad request: json: unknown field "n"', ("n",))
    assert databricks.error_body(theirs)["message"] == theirs.message


def test_extra_parameters_have_the_text_of_the_service_only_in_the_actual_profile() -> None:
    fault = Fault("extra_parameter", "Extra parameters ['n'] are not allowed", ("n",))
    assert "['n']" in azure.write_fault(fault, CTX).body["detail"]
    assert "detail" not in azure.write_fault(fault, DOCUMENTED).body


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "It is wrong"),
        ("", "It is wrong"),
        (0, "It is wrong (got 0)"),
        (2.5, "It is wrong (got 2.5)"),
        (False, "It is wrong (got false)"),
        ("json_object", "It is wrong (got json_object)"),
        (["a", None], 'It is wrong (got ["a",null])'),
        ("x" * 81, "It is wrong"),
        ("wrong", "It is wrong"),
        (10**30, "It is wrong"),
    ],
)
@pytest.mark.parametrize("kind", ["invalid_request", "unprocessable"])
def test_the_value_is_in_the_message(value: JsonValue, message: str, kind: Kind) -> None:
    fault = Fault(kind, "It is wrong", ("n",), value)
    assert openai.error_body(fault)["error"]["message"] == message


def test_got_is_said_once() -> None:
    fault = Fault("invalid_request", "n must be of type integer, got string", ("n",), "hot")
    assert openai.error_body(fault)["error"]["message"] == fault.message


def test_details() -> None:
    fault = Fault(
        "invalid_request", "No", ("n",), 5, provider_code="BAD_REQUEST", details={"error_code": "BAD_REQUEST"}
    )
    native = {"value": 5, "provider_code": "BAD_REQUEST", "native": {"error_code": "BAD_REQUEST"}}
    assert openai.error_body(fault)["error"]["details"] == native
    fault = Fault("invalid_request", "No", ("n",), "x" * 5000, details={1, 2})
    assert "details" not in openai.error_body(fault)["error"]


@pytest.mark.parametrize(("seconds", "header"), [(None, None), (0.0, "0"), (0.2, "1"), (3.0, "3"), (3600.0, "3600")])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_retry_after(dialect: str, seconds: float | None, header: str | None) -> None:
    written = DIALECTS[dialect].write_fault(Fault("rate_limit", "Wait", retry_after=seconds), CTX)
    assert written.headers.get("retry-after") == header


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_does_not_repeat_what_fails_until_somebody_acts(dialect: str) -> None:
    final = [
        Fault("permission", "The endpoint is disabled"),
        Fault("upstream_auth_failed", "No"),
        Fault("rate_limit", "No credit", code="insufficient_quota"),
    ]
    for fault in final:
        assert DIALECTS[dialect].write_fault(fault, CTX).headers["x-should-retry"] == "false"
    for fault in (Fault("rate_limit", "Wait"), Fault("upstream_error", "No"), Fault("content_filter", "No")):
        assert "x-should-retry" not in DIALECTS[dialect].write_fault(fault, CTX).headers


def test_every_dialect_shows_that_the_context_is_too_long() -> None:
    fault = Fault("invalid_request", "The prompt is too long", code="context_length_exceeded")
    code, message = fault.code, f"The prompt is too long ({fault.code})"
    assert openai.write_fault(fault, CTX).body["error"]["code"] == code
    written = azure.write_fault(fault, CTX)
    assert (written.body["code"], written.headers["x-ms-error-code"]) == (code, code)
    assert azure.error_event(fault)["error"]["code"] == code
    assert databricks.write_fault(fault, CTX).body == {"error_code": "INVALID_PARAMETER_VALUE", "message": message}
    assert databricks.error_event(fault)["error"]["code"] == code
    assert mindie.write_fault(fault, CTX).body == {"error": message, "error_type": "Input Validation Error"}
    said = Fault("invalid_request", "context_length_exceeded: 9 > 4", code="context_length_exceeded")
    assert databricks.error_body(said)["message"] == said.message


@pytest.mark.parametrize("ctx", [CTX, DOCUMENTED], ids=["actual", "documented"])
def test_azure_answers_404_if_the_model_does_not_support_the_modality(ctx: Context) -> None:
    message = "the provider p is not used for embeddings: its protocols are chat"
    written = azure.write_fault(
        Fault("unsupported_parameter", message, ("model",), code="unsupported_protocol"), ctx
    )  # fmt: skip
    assert (written.status, written.headers["x-ms-error-code"]) == (404, "unsupported_protocol")
    flat = {"status": 404, "error": "Not Found", "message": message}
    assert written.body == flat if ctx is DOCUMENTED else written.body.items() >= {**flat, "error": ANY}.items()
    assert list(load_validator("azure/chat.error", ctx.profile).violations(written.body)) == []


def test_events() -> None:
    fault = Fault("upstream_timeout", "Too slow")
    error = {"code": "upstream_timeout", "message": "Too slow", "status": 504, "param": None}
    assert azure.error_event(fault) == {"error": error}
    assert databricks.error_event(fault) == {
        "error": {"message": "Too slow", "type": "upstream_timeout", "param": None, "code": "DEADLINE_EXCEEDED"},
        "error_code": "DEADLINE_EXCEEDED",
        "message": "Too slow",
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    message=st.text(st.characters(exclude_categories=()), max_size=20),
    path=st.lists(st.text(max_size=5) | st.integers(0, 9), max_size=4).map(tuple),
    value=JSON,
    details=JSON,
)
def test_any_fault_can_be_written(
    dialect: str, kind: Kind, message: str, path: Path, value: JsonValue, details: JsonValue
) -> None:
    written = DIALECTS[dialect].write_fault(Fault(kind, message, path, value, details=details), CTX)
    body = orjson.loads(orjson.dumps(written.body))
    assert body.get("message") or body["error"]
    assert 400 <= written.status <= 599


@for_each("dialect", DIALECTS)
@for_each("kind", KINDS)
def test_every_dialect_reads_its_own_writing(dialect: str, kind: Kind) -> None:
    written = DIALECTS[dialect].write_fault(Fault(kind, "Said so", ("n",)), CTX)
    fault = (
        dialects[dialect]
        .called["chat"]
        .read_fault(Reply(written.status, written.body, {}, orjson.dumps(written.body)), CTX)
    )
    if fault.kind != "upstream_auth_failed":
        assert "Said so" in fault.message
        assert fault.owner == KINDS[kind][0] or dialect == "mindie" or KINDS[kind][0] == "proxy" or fault.status >= 500
