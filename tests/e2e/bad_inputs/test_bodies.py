"""Bodies that are wrong, and what announces them, from the clients of every dialect: each gets the exact status and its
own dialect's error, and no request reaches a provider.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest

from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import DIALECTS

from .conftest import (
    HELLO,
    NO_JSON,
    SERVED,
    Case,
    MakeLimitedClient,
    check_body,
    check_cases,
    check_unharmed,
    text,
)

JSON = "application/json"


def with_raw(name: str, raw: bytes) -> bytes:
    """A request with a part that no JSON library would write."""
    return text(**{name: "RAW"}).replace(b'"RAW"', raw)


def syntax() -> Iterator[Case]:
    def case(code: str, body: bytes, *words: str, param: str | None = None) -> Case:
        return Case("syntax", code, param, body, words, own=NO_JSON)

    yield case("empty_body", b"", "body is empty")
    yield case("invalid_json", b'{"a":', "line 1", "column 6", "byte 5")
    for body, name in ((b"[]", "array"), (b'"x"', "string"), (b"null", "null")):
        yield Case("invalid_request", "invalid_type", None, body, (f"expected object, got {name}",))
    for word in ("NaN", "Infinity", "-Infinity"):
        yield case("invalid_json", with_raw("temperature", word.encode()), "column")
    twice = b'{"model": "x", ' + text()[1:]
    yield case("duplicate_key", twice, "model", "byte 1)", "byte 15)", param="model")
    yield case("json_too_deep", b"[" * 100_000, "128")
    yield case("json_too_deep", with_raw("metadata", b'{"a":' * 200 + b"1" + b"}" * 200), "128")
    for name, number in (("seed", b"9" * 5000), ("temperature", b"1e999")):
        yield case("number_out_of_range", with_raw(name, number), name, "range", param=name)
    lone = text(messages=[{"role": "user", "content": "\ud800"}])
    yield case("invalid_unicode", lone, "surrogate", f"byte {lone.index(b'ud800') - 1}")
    broken = text().replace(b"hello", b"hel\xfflo")
    yield case("invalid_utf8", broken, "0xff", f"byte {broken.index(0xFF)}")
    yield case("invalid_utf8", text().decode().encode("utf-16"), "UTF-16")


def transport() -> Iterator[Case]:
    for charset in ("bogus-8", "latin-1"):
        headers = {"Content-Type": f"{JSON}; charset={charset}"}
        yield Case("unsupported_media_type", "unsupported_charset", None, text(), ("utf-8",), headers)
    plain = {"Content-Type": "text/plain"}
    yield Case("unsupported_media_type", "unsupported_media_type", None, text(), (JSON,), plain)
    yield Case("too_large", "request_too_large", None, b" " * 100_001, ("100001", "100000"))
    zipped, brotli = {"Content-Encoding": "gzip"}, {"Content-Encoding": "br"}
    yield Case("too_large", "request_too_large", None, gzip.compress(b" " * 5_000_000), ("100000",), zipped)
    supported = ("gzip or deflate",)
    for body, headers in ((b"x" * 50, zipped), (gzip.compress(text())[:-5], zipped), (text(), brotli)):
        yield Case("invalid_request", "invalid_content_encoding", None, body, supported, headers)


NO_MODEL = {"mindie": "Request contains not model or model null."}
NO_NAME = {"mindie": "Request param model must be string."}
NOT_FOUND = {"mindie": "Model not found."}
NO_LIST = {"mindie": "messages not arr or arr is empty"}


def models(dialect: str, profile: str) -> Iterator[Case]:
    missing = "missing_required_parameter"
    by_pattern = (dialect, profile) == ("mindie", "documented")
    yield Case("invalid_request", missing, "model", text(model=None), ("model",), own=NO_MODEL)
    yield Case("invalid_request", "invalid_type", "model", text(model=123), ("model", "123"), own=NO_NAME)
    code = {"openai": "string_below_min_length", "mindie": "string_below_min_length"}.get(dialect, missing)
    yield Case("invalid_request", "invalid_value" if by_pattern else code, "model", text(model=""), ("model",))
    for name in ("opena", "../../admin", "x" * 300, "a\x00b"):
        words = ("did you mean openai?",) if name == "opena" else ("model",)
        yield Case("model_not_found", "model_not_found", "model", text(model=name), words, own=NOT_FOUND)
    if dialect == "databricks":
        for name in ("opena", "..%2F..%2Fadmin", "%2e%2e", "x" * 300, "a%00b", "a%2Fb"):
            path = f"/serving-endpoints/{name}/invocations"
            body = text(model=None)
            yield Case("model_not_found", "model_not_found", "model", body, ("does not exist",), path=path)


def messages() -> Iterator[Case]:
    codes: JsonObject = {"missing_required_parameter": None, "array_below_min_length": [], "invalid_type": {}}
    for code, value in codes.items():
        body = text(messages=value)
        yield Case("invalid_request", code, "messages", body, ("messages",), own=NO_LIST)
    nothing, wizard = {"role": "user", "content": None}, {"role": "wizard", "content": "x"}
    place = "messages[0].content"
    yield Case("invalid_request", "invalid_type", place, text(messages=[nothing]), (place, "got null"))
    roles = ("system, user, assistant, tool", "wizard")
    place = "messages[1].role"
    yield Case("invalid_request", "invalid_value", place, text(messages=[HELLO, wizard]), (place, *roles))


def numbers(dialect: str, profile: str) -> Iterator[Case]:
    beyond = "unsupported_parameter" if dialect == "azure" else "invalid_request"  # its API has no upper bound

    def case(name: str, value: JsonValue, code: str, *words: str, kind: str = "invalid_request") -> Case:
        return Case(kind, code, name, text(**{name: value}), (name, *words))

    yield case("temperature", "hot", "invalid_type", "number")
    yield case("temperature", 3.1, "decimal_above_max_value", "at most 2", kind=beyond)
    yield case("temperature", -1, "integer_below_min_value", " 0")
    if dialect == "azure":
        yield case("n", 10**9, "unknown_parameter", kind="extra_parameter")
    elif (dialect, profile) == ("mindie", "documented"):
        yield case("n", 10**9, "integer_above_max_value", "at most 128", kind="unsupported_parameter")
    else:
        yield case("n", 10**9, "integer_above_max_value", "at most")
    yield case("max_tokens", -1, "integer_below_min_value", "max_tokens")
    yield case("max_tokens", 0, "integer_below_min_value", "max_tokens", kind=beyond)
    for value in (1.5, True):
        yield case("max_tokens", value, "invalid_type", "integer", json.dumps(value))


STEERING = ("api_base", "base_url", "api_key", "custom_host", "extra_headers", "extra_body", "proxies", "model_list")


def unknown(dialect: str) -> Iterator[Case]:
    def case(name: str, *words: str, headers: dict[str, str] | None = None, **body: JsonValue) -> Case:
        own = {"databricks": f'Bad request: json: unknown field \\"{name.rpartition(".")[2]}\\"'}
        headers = headers or {}
        return Case("extra_parameter", "unknown_parameter", name, text(**body), (name, *words), headers, own=own)

    strict = {"extra-parameters": "error"}
    yield case("foo", headers=strict, foo=1)
    meant = "Did you mean max_tokens by max_token?" if dialect == "azure" else "did you mean max_tokens?"
    yield case("max_token", meant, headers=strict, max_token=5)
    word = {"extra-parameters": "perhaps"}
    allowed = ("perhaps", "error", "drop", "pass-through")
    yield Case("invalid_request", "invalid_value", "extra-parameters", text(foo=1), allowed, word)
    if dialect == "azure":
        yield case("foo", "'n'", "pass-through", foo=1, n=2)
    yield case("messages[0].foo", headers=strict, messages=[{**HELLO, "foo": 1}])
    meant = "Did you mean content by messages[0].contents?" if dialect == "azure" else "did you mean content?"
    yield case("messages[0].contents", meant, headers=strict, messages=[{**HELLO, "contents": 1}])
    for name in (*STEERING, "user_config", "fallbacks", "chat_template"):
        yield case(name, "leave it out", **{name: "http://127.0.0.1:9"})


def across(dialect: str, profile: str) -> Iterator[Case]:
    def case(name: str, *words: str, **body: JsonValue) -> Case:
        return Case("invalid_request", "invalid_value", name, text(**body), (name, *words))

    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}}
    other = {"type": "function", "function": {"name": "g"}}
    yield case("tool_choice.function.name", "tool_choice", "g", tools=[tool], tool_choice=other)
    dangling = {"role": "tool", "tool_call_id": "x", "content": "r"}
    yield case("messages[1].tool_call_id", "no earlier tool call", messages=[HELLO, dangling])
    if dialect == "openai":  # the others do not have it
        yield case("stream_options", "stream to be true", stream_options={"include_usage": True})
    if dialect in ("openai", "databricks") or (dialect, profile) == ("mindie", "actual"):
        yield case("top_logprobs", "logprobs ", logprobs=False, top_logprobs=2)


def cases(dialect: str, profile: str) -> Iterator[Case]:
    yield from (*syntax(), *transport(), *models(dialect, profile), *messages(), *numbers(dialect, profile))
    yield from (*unknown(dialect), *across(dialect, profile))


@pytest.mark.parametrize(("dialect", "profile"), SERVED, ids=["/".join(served) for served in SERVED])
async def test_what_is_wrong_with_a_request(
    make: MakeLimitedClient, dialect: str, profile: str, subtests: pytest.Subtests
) -> None:
    await check_cases(await make(dialect, profile), cases(dialect, profile), subtests)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_byte_order_mark_is_accepted_and_noted(make: MakeLimitedClient, dialect: str) -> None:
    client = await make(dialect)
    answer = await client.send(b"\xef\xbb\xbf" + text(), headers={"x-request-id": "marked"})
    assert answer.status == 200
    assert "a byte order mark preceded the body" in str(client.house.line("marked")["changes"])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_unknown_field_is_dropped_or_forwarded(make: MakeLimitedClient, dialect: str) -> None:
    client = await make(dialect)
    fake = client.house.fakes["openai"]
    for word, arrives in (("ignore", False), ("drop", False), ("pass-through", True)):
        answer = await client.ask("openai", way=-1, foo=1, headers={"extra-parameters": word})
        assert answer.status == 200
        assert ("foo" in fake.requests[-1].body) == arrives
        assert ("foo" in answer.headers.get("x-dragoman-changes", "")) != arrives


async def test_azures_header_decides_about_extra_parameters(make: MakeLimitedClient) -> None:
    client = await make("azure")
    for provider in ("azure", "openai"):
        fake = client.house.fakes[provider]
        client.check_error(await client.ask(provider, n=2), "extra_parameter", "['n']")
        assert fake.requests == []
        for word, arrives in (("drop", False), ("ignore", False), ("pass-through", True)):
            assert (await client.ask(provider, n=2, headers={"extra-parameters": word})).status == 200
            assert ("n" in fake.requests[-1].body) == arrives


async def test_bad_inputs_of_responses(make: MakeLimitedClient) -> None:
    """What both protocols have in common."""
    client = await make("openai")
    for case in (*syntax(), *transport(), *models("openai", "actual"), *unknown("openai")):
        body = case.body.replace(b'"messages"', b'"input"')
        answer = await client.send(body, "/v1/responses", case.headers)
        places = ("byte", "max_tokens")  # that differ between the protocols
        case = case._replace(param=case.param and case.param.replace("messages", "input"))
        words = [word.replace("messages", "input") for word in case.words if not any(place in word for place in places)]
        check_body(client, case, client.check_error(answer, case.kind, *words), answer.headers)
        await check_unharmed(client)
