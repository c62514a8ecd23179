"""Requests that are wrong, from the clients of every dialect: each gets the exact status and its own dialect's error,
quickly, and no provider hears of it. Rows 16 to 22 stand at the end of the file, all others are in tables.

What is no HTTP at all belongs to no address, so it is answered in OpenAI's form: tests/proxy/test_server.py.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

SERVED = (
    ("openai", "actual"),
    ("databricks", "actual"),
    ("azure", "actual"),
    ("mindie", "documented"),
    ("databricks", "documented"),
    ("azure", "documented"),
    ("mindie", "actual"),
)
DIALECTS = ("openai", "databricks", "azure", "mindie")
KEY = "sk-canary-mine"
QUICK = 0.1  # seconds
HELLO = {"role": "user", "content": "hello"}
JSON = "application/json"


class Case(NamedTuple):
    """A request, the kind of fault that it is, its parameter and code, and words of the answer. `row` is its number in
    the catalogue."""

    row: int
    kind: str
    code: str
    param: str | None
    body: bytes
    words: tuple[str, ...] = ()
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody alters it
    path: str = ""
    own: dict[str, str] = {}  # noqa: RUF012 - words of one dialect's answer


def text(**more: Any) -> bytes:
    """A request with these parts; what is None is left out."""
    body = {"model": "openai", "messages": [HELLO], **more}
    return json.dumps({key: value for key, value in body.items() if value is not None}).encode()


def with_raw(name: str, raw: bytes) -> bytes:
    """A request with a part that no JSON library would write."""
    return text(**{name: "RAW"}).replace(b'"RAW"', raw)


NO_JSON = {"mindie": "Failed to parse request context to json: ", "databricks": "Bad request: json: "}


def syntax() -> Iterator[Case]:
    def case(row: int, code: str, body: bytes, *words: str, param: str | None = None) -> Case:
        return Case(row, "syntax", code, param, body, words, own=NO_JSON)

    yield case(1, "empty_body", b"", "body is empty")
    yield case(2, "invalid_json", b'{"a":', "line 1", "column 6", "byte 5")
    for body, name in ((b"[]", "array"), (b'"x"', "string"), (b"null", "null")):
        yield Case(3, "invalid_request", "invalid_type", None, body, (f"expected object, got {name}",))
    for word in ("NaN", "Infinity", "-Infinity"):
        yield case(4, "invalid_json", with_raw("temperature", word.encode()), "column")
    twice = b'{"model": "x", ' + text()[1:]
    yield case(5, "duplicate_key", twice, "model", "byte 1)", "byte 15)", param="model")
    yield case(6, "json_too_deep", b"[" * 100_000, "128")
    yield case(6, "json_too_deep", with_raw("metadata", b'{"a":' * 200 + b"1" + b"}" * 200), "128")
    for name, number in (("seed", b"9" * 5000), ("temperature", b"1e999")):
        yield case(7, "number_out_of_range", with_raw(name, number), name, "range", param=name)
    lone = text(messages=[{"role": "user", "content": "\ud800"}])
    yield case(8, "invalid_unicode", lone, "surrogate", f"byte {lone.index(b'ud800') - 1}")
    broken = text().replace(b"hello", b"hel\xfflo")
    yield case(9, "invalid_utf8", broken, "0xff", f"byte {broken.index(0xFF)}")
    yield case(10, "invalid_utf8", text().decode().encode("utf-16"), "UTF-16")


def transport() -> Iterator[Case]:
    for charset in ("bogus-8", "latin-1"):
        headers = {"Content-Type": f"{JSON}; charset={charset}"}
        yield Case(11, "unsupported_media_type", "unsupported_charset", None, text(), ("utf-8",), headers)
    plain = {"Content-Type": "text/plain"}
    yield Case(12, "unsupported_media_type", "unsupported_media_type", None, text(), (JSON,), plain)
    yield Case(13, "too_large", "request_too_large", None, b" " * 100_001, ("100001", "100000"))
    zipped, brotli = {"Content-Encoding": "gzip"}, {"Content-Encoding": "br"}
    yield Case(14, "too_large", "request_too_large", None, gzip.compress(b" " * 5_000_000), ("100000",), zipped)
    supported = ("gzip or deflate",)
    for body, headers in ((b"x" * 50, zipped), (gzip.compress(text())[:-5], zipped), (text(), brotli)):
        yield Case(15, "invalid_request", "invalid_content_encoding", None, body, supported, headers)


NO_MODEL = {"mindie": "Request contains not model or model null."}
NO_NAME = {"mindie": "Request param model must be string."}
NOT_FOUND = {"mindie": "Model not found."}
NO_LIST = {"mindie": "messages not arr or arr is empty"}


def models(dialect: str, profile: str) -> Iterator[Case]:
    missing = "missing_required_parameter"
    by_pattern = (dialect, profile) == ("mindie", "documented")
    yield Case(23, "invalid_request", missing, "model", text(model=None), ("model",), own=NO_MODEL)
    yield Case(23, "invalid_request", "invalid_type", "model", text(model=123), ("model", "123"), own=NO_NAME)
    code = {"openai": "string_below_min_length", "mindie": "string_below_min_length"}.get(dialect, missing)
    yield Case(23, "invalid_request", "invalid_value" if by_pattern else code, "model", text(model=""), ("model",))
    for name in ("opena", "../../admin", "x" * 300, "a\x00b"):
        words = ("did you mean openai?",) if name == "opena" else ("model",)
        yield Case(24, "model_not_found", "model_not_found", "model", text(model=name), words, own=NOT_FOUND)
    if dialect == "databricks":
        for name in ("opena", "..%2F..%2Fadmin", "%2e%2e", "x" * 300, "a%00b", "a%2Fb"):
            path = f"/serving-endpoints/{name}/invocations"
            body = text(model=None)
            yield Case(24, "model_not_found", "model_not_found", "model", body, ("does not exist",), path=path)


def messages() -> Iterator[Case]:
    codes: dict[str, Any] = {"missing_required_parameter": None, "array_below_min_length": [], "invalid_type": {}}
    for code, value in codes.items():
        body = text(messages=value)
        yield Case(25, "invalid_request", code, "messages", body, ("messages",), own=NO_LIST)
    nothing, wizard = {"role": "user", "content": None}, {"role": "wizard", "content": "x"}
    place = "messages[0].content"
    yield Case(25, "invalid_request", "invalid_type", place, text(messages=[nothing]), (place, "got null"))
    roles = ("system, user, assistant, tool", "wizard")
    place = "messages[1].role"
    yield Case(25, "invalid_request", "invalid_value", place, text(messages=[HELLO, wizard]), (place, *roles))


def numbers(dialect: str, profile: str) -> Iterator[Case]:
    beyond = "unsupported_parameter" if dialect == "azure" else "invalid_request"  # its API has no upper bound

    def case(name: str, value: Any, code: str, *words: str, kind: str = "invalid_request") -> Case:
        return Case(26, kind, code, name, text(**{name: value}), (name, *words))

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
    def case(name: str, *words: str, row: int = 27, headers: dict[str, str] | None = None, **body: Any) -> Case:
        own = {"databricks": f'Bad request: json: unknown field \\"{name.rpartition(".")[2]}\\"'}
        headers = headers or {}
        return Case(row, "extra_parameter", "unknown_parameter", name, text(**body), (name, *words), headers, own=own)

    strict = {"extra-parameters": "error"}
    yield case("foo", headers=strict, foo=1)
    meant = "Did you mean max_tokens by max_token?" if dialect == "azure" else "did you mean max_tokens?"
    yield case("max_token", meant, headers=strict, max_token=5)
    word = {"extra-parameters": "perhaps"}
    allowed = ("perhaps", "error", "drop", "pass-through")
    yield Case(27, "invalid_request", "invalid_value", "extra-parameters", text(foo=1), allowed, word)
    if dialect == "azure":
        yield case("foo", "'n'", "pass-through", foo=1, n=2)
    if dialect in ("azure", "databricks"):
        yield case("messages[0].foo", messages=[{**HELLO, "foo": 1}])
        yield case("messages[0].contents", "did you mean content?", messages=[{**HELLO, "contents": 1}])
    for name in (*STEERING, "user_config", "fallbacks", "chat_template"):
        yield case(name, "leave it out", row=29, **{name: "http://127.0.0.1:9"})


def tool(parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "description": "", "parameters": parameters}}


def nested(levels: int) -> dict[str, Any]:
    """A schema of that many levels."""
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"not": schema}
    return schema


def many(count: int) -> dict[str, Any]:
    """A schema of that many values."""
    return {"enum": list(range(count - 2))}


BAD_SCHEMAS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    *(
        ({"items": {"$ref": where}}, ("#/items/$ref", "inside the schema"))
        for where in ("http://127.0.0.1:9/x", "file:///etc/passwd", "ftp://127.0.0.1/x", "other.json#/a")
    ),
    ({"properties": {"a/b": {"pattern": "(a+)+$" * 1000}}}, ("#/properties/a~1b/pattern", "1000")),
    (nested(33), ("32 levels",)),
    (many(5001), ("5000 values",)),
    ({"description": "x" * 65_536}, ("65554 bytes", "65536")),
)


def tools(dialect: str, profile: str) -> Iterator[Case]:
    place, code = "tools[0].function.parameters", "invalid_function_parameters"
    for schema, words in BAD_SCHEMAS:
        yield Case(28, "invalid_request", code, place, text(tools=[tool(schema)]), (place, *words))
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
        if (dialect, profile) != ("azure", "documented"):  # whose reference has no such format
            where = "response_format.json_schema.schema"
            body = text(response_format=form)
            yield Case(28, "invalid_request", "invalid_json_schema", where, body, (where, *words))
    deep = b'{"properties":{"a":' * 500 + b"{}" + b"}}" * 500
    body = text(tools=[tool("RAW")]).replace(b'"RAW"', deep)
    yield Case(28, "syntax", "json_too_deep", None, body, ("128",), own=NO_JSON)
    other = {"type": "function", "function": {"name": "g"}}
    place = "tool_choice.function.name"
    body = text(tools=[tool({"type": "object"})], tool_choice=other)
    yield Case(30, "invalid_request", "invalid_value", place, body, ("tool_choice", "g"))


def across(dialect: str, profile: str) -> Iterator[Case]:
    """Without the catalogue's `previous_response_id`, which is no parameter of chat."""

    def case(name: str, *words: str, **body: Any) -> Case:
        return Case(30, "invalid_request", "invalid_value", name, text(**body), (name, *words))

    dangling = {"role": "tool", "tool_call_id": "x", "content": "r"}
    yield case("messages[1].tool_call_id", "no earlier tool call", messages=[HELLO, dangling])
    if dialect == "openai":  # the others do not have it
        yield case("stream_options", "stream to be true", stream_options={"include_usage": True})
    if dialect in ("openai", "databricks") or (dialect, profile) == ("mindie", "actual"):
        yield case("top_logprobs", "logprobs ", logprobs=False, top_logprobs=2)


def cases(dialect: str, profile: str) -> Iterator[Case]:
    yield from (*syntax(), *transport(), *models(dialect, profile), *messages(), *numbers(dialect, profile))
    yield from (*unknown(dialect), *tools(dialect, profile), *across(dialect, profile))


def check_body(client: Any, case: Case, body: Any, headers: Any) -> None:
    """Every member of the body beside its words, which `check_error` has looked at."""
    if client.dialect == "openai":
        error = {key: value for key, value in body["error"].items() if key not in ("message", "type", "details")}
        assert error == {"param": case.param, "code": case.code}
        assert body["error"].get("details", {}).keys() <= {"value"}
    elif client.dialect == "azure":
        code = "parameter_not_supported" if case.kind == "unsupported_parameter" else case.code
        assert headers["x-ms-error-code"] == code
        if body["status"] == 422:
            assert body["detail"]["loc"] == ["body", case.param]
            assert body["detail"]["value"] in case.body.decode()
        elif body["status"] != 404:
            assert (body["code"], body["param"]) == (code, case.param)
    elif case.param is not None:
        assert case.param in body.get("message", body.get("error"))
    assert json.dumps(body).count("got ") <= 1 + json.dumps(body).count('"detail"')


@pytest.fixture
async def make(build: Any, client_of: Any) -> Any:
    """A client of a house that takes small bodies, soon loses patience, and wants a key."""

    async def client(dialect: str, profile: str | None = None) -> Any:
        server = {
            "body_limit": 100_000,
            "body_timeout": 0.2,
            "profiles": {dialect: profile} if profile else {},
        }
        return client_of(await build(keys=[{"name": "me", "key": KEY}], server=server), dialect, KEY)

    return client


async def check_unharmed(client: Any) -> None:
    """No provider was asked, no secret was told, and the next request works."""
    house = client.house
    for fake in house.fakes.values():
        assert (fake.requests, fake.connections) == ([], 0)
    assert (await client.ask("mindie")).status == 200
    house.fakes["mindie"].requests.clear()
    house.fakes["mindie"].connections = 0
    for secret in (b"sk-canary", b"sk-upstream", b"Traceback"):
        assert secret not in house.log.getvalue()


async def timed(client: Any, case: Case) -> tuple[Any, float]:
    """The answer, and the processor time that client and proxy took: what else the machine does must not count."""
    start = time.process_time()
    answer = await client.send(case.body, case.path, case.headers)
    return answer, time.process_time() - start


@pytest.mark.parametrize(("dialect", "profile"), SERVED, ids=["/".join(served) for served in SERVED])
async def test_what_is_wrong_with_a_request(make: Any, dialect: str, profile: str, subtests: pytest.Subtests) -> None:
    client = await make(dialect, profile)
    for case in cases(dialect, profile):
        with subtests.test(row=case.row, body=case.body[:80]):
            answer, seconds = await timed(client, case)
            own = (case.own[dialect],) if dialect in case.own else ()
            body = client.check_error(answer, case.kind, *case.words, *own)
            check_body(client, case, body, answer.headers)
            if seconds > QUICK:  # the machine may have been busy
                seconds = (await timed(client, case))[1]
            assert seconds < QUICK
            for secret in (b"sk-canary", b"sk-upstream", b"Traceback"):
                assert secret not in answer.raw
            await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_10_a_byte_order_mark_is_accepted_and_noted(make: Any, dialect: str) -> None:
    client = await make(dialect)
    answer = await client.send(b"\xef\xbb\xbf" + text(), headers={"x-request-id": "marked"})
    assert answer.status == 200
    assert "a byte order mark stood before the body" in str(client.house.line("marked")["changes"])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_27_an_unknown_field_is_dropped_or_forwarded(make: Any, dialect: str) -> None:
    client = await make(dialect)
    fake = client.house.fakes["openai"]
    for word, arrives in (("ignore", False), ("drop", False), ("pass-through", True)):
        answer = await client.ask("openai", way=-1, foo=1, headers={"extra-parameters": word})
        assert answer.status == 200
        assert ("foo" in fake.requests[-1].body) == arrives
        assert ("foo" in answer.headers.get("x-dragoman-changes", "")) != arrives


async def test_v09_extra_parameters_of_azure(make: Any) -> None:
    client = await make("azure")
    for provider in ("azure", "openai"):
        fake = client.house.fakes[provider]
        client.check_error(await client.ask(provider, n=2), "extra_parameter", "['n']")
        assert fake.requests == []
        for word, arrives in (("drop", False), ("ignore", False), ("pass-through", True)):
            assert (await client.ask(provider, n=2, headers={"extra-parameters": word})).status == 200
            assert ("n" in fake.requests[-1].body) == arrives


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_28_a_schema_of_5_mb(house: Any, client_of: Any, dialect: str) -> None:
    client = client_of(house, dialect)
    body = text(tools=[tool({"description": "x" * 5_000_000})])
    case = Case(28, "invalid_request", "invalid_function_parameters", "tools[0].function.parameters", body, ("65536",))
    seconds = 1.0
    for _ in range(3):
        start = time.process_time()  # of client and proxy together: a busy machine makes no difference
        answer, _ = await timed(client, case)
        seconds = min(seconds, time.process_time() - start)
        check_body(client, case, client.check_error(answer, case.kind, *case.words), answer.headers)
    assert seconds < QUICK
    assert house.fakes["openai"].connections == 0


RESPONSES_SCHEMAS: dict[str, tuple[str, Any]] = {
    "tools[0].parameters": ("invalid_function_parameters", lambda schema: {"tools": [flat_tool(schema)]}),
    "tools[0].tools[0].parameters": (
        "invalid_function_parameters",
        lambda schema: {
            "tools": [{"type": "namespace", "name": "n", "description": "d", "tools": [flat_tool(schema)]}]
        },
    ),
    "input[0].tools[0].parameters": (
        "invalid_function_parameters",
        lambda schema: {"input": [{"type": "additional_tools", "role": "developer", "tools": [flat_tool(schema)]}]},
    ),
    "text.format.schema": (
        "invalid_json_schema",
        lambda schema: {"text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}},
    ),
}


def flat_tool(schema: Any) -> dict[str, Any]:
    return {"type": "function", "name": "f", "parameters": schema, "strict": False}


@pytest.mark.parametrize("place", RESPONSES_SCHEMAS)
async def test_row_28_schemas_of_responses(make: Any, place: str) -> None:
    client = await make("openai")
    code, holder = RESPONSES_SCHEMAS[place]
    for schema, words in BAD_SCHEMAS:
        body = json.dumps({"model": "openai", "input": "hello", **holder(schema)}).encode()
        answer = await client.send(body, "/v1/responses")
        client.check_error(answer, "invalid_request", place, *words)
        error = answer.json["error"]
        assert (error["param"], error["code"]) == (place, code)
        await check_unharmed(client)


async def test_bad_inputs_of_responses(make: Any) -> None:
    """What both protocols have in common: rows 1 to 15, 23, 24, 27 and 29."""
    client = await make("openai")
    both = [case for case in cases("openai", "actual") if case.row in (*range(1, 16), 23, 24, 27, 29)]
    for case in both:
        body = case.body.replace(b'"messages"', b'"input"')
        answer = await client.send(body, "/v1/responses", case.headers)
        places = ("byte", "max_tokens")  # that differ between the protocols
        words = [word for word in case.words if not any(place in word for place in places)]
        check_body(client, case, client.check_error(answer, case.kind, *words), answer.headers)
        await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_28_schemas_just_within_the_bounds(make: Any, dialect: str) -> None:
    client = await make(dialect)
    for schema in (nested(32), many(5000), {"description": "x" * 65_518}):
        assert (await client.ask("openai", way=-1, tools=[tool(schema)])).status in (200, 422)
        assert client.house.fakes["openai"].requests.pop().body["tools"][0]["function"]["parameters"] == schema


async def raw(client: Any, *parts: bytes) -> Any:
    """The answer to these bytes, which go out one by one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.house.proxy.port)
    try:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0.02)
        start = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 2)
        first, *lines = start.decode().strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await asyncio.wait_for(reader.readexactly(int(headers["content-length"])), 2)
    finally:
        writer.close()
    assert first.startswith("HTTP/1.1 ")
    assert headers["connection"] == "close"
    assert b"attackerbytes" not in start + body
    return client.answer(int(first.split()[1]), headers, body)


def head(client: Any, *lines: str, method: str = "POST", path: str = "", key: str = KEY) -> bytes:
    address = path or client.paths[-1]
    given = [f"{method} {address} HTTP/1.1", "Host: a", f"Authorization: Bearer {key}", *lines]
    return "\r\n".join(given).encode() + b"\r\n\r\n"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_16_a_body_in_broken_chunks(make: Any, dialect: str) -> None:
    client = await make(dialect)
    answer = await raw(client, head(client, "Transfer-Encoding: chunked"), b"ZZ\r\nattackerbytes")
    client.check_error(answer, "invalid_request", "HTTP/1.1")
    await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_rows_16_to_18_what_is_no_request_to_any_dialect(make: Any, dialect: str) -> None:
    client = await make(dialect)
    rejected = {
        (400, "bad_http"): head(client, "Content-Length: 3", "Transfer-Encoding: chunked"),
        (431, "headers_too_large"): head(client, "X-Long: " + "attackerbytes" * 700),
        (414, "uri_too_long"): head(client, path=client.paths[-1] + "?" + "attackerbytes" * 700),
    }
    for (status, code), data in rejected.items():
        answer = await raw(client, data)
        assert (answer.status, answer.json["error"]["code"]) == (status, code)
        await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_19_a_body_that_does_not_come(make: Any, dialect: str) -> None:
    client = await make(dialect)
    answer = await raw(client, head(client, "Content-Length: 100"), b"{")
    client.check_error(answer, "request_timeout")
    await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_20_a_client_that_leaves_in_its_body(make: Any, dialect: str) -> None:
    client = await make(dialect)
    reader, writer = await asyncio.open_connection("127.0.0.1", client.house.proxy.port)
    writer.write(head(client, "Content-Length: 100") + b"{")
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 2) == b""
    writer.close()
    await check_unharmed(client)
    assert b'"outcome":"client_left"' in client.house.log.getvalue()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_21_who_has_no_key(make: Any, dialect: str) -> None:
    client = await make(dialect)
    for headers in (
        {"Authorization": ""},
        {"Authorization": "Bearer sk-canary-wrong"},
        {"Authorization": "Bearer ' OR 1=1--"},
        {"Authorization": f"Basic {KEY}"},
        {"api-key": "sk-canary-other"},
    ):
        answer = await client.send(text(), headers=headers)
        client.check_error(answer, "auth", "API key")
        assert b"canary" not in answer.raw
        await check_unharmed(client)
    for headers in ({"api-key": KEY, "Authorization": ""}, {"api-key": KEY}):
        assert (await client.send(text(), headers=headers)).status == 200


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_22_another_method(make: Any, dialect: str) -> None:
    client = await make(dialect)
    for method in ("GET", "PUT", "DELETE"):
        answer = await raw(client, head(client, "Connection: close", method=method))
        assert answer.headers["allow"] == "POST, OPTIONS"
        client.check_error(answer, "method_not_allowed", "POST")
    await check_unharmed(client)


WRONG_ADDRESSES = {
    "openai": ("/v1/chat/completion", "/openai/v1/nothing", "/nowhere"),
    "databricks": ("/serving-endpoints/chat/completion", "/databricks/serving-endpoints/x/nothing"),
    "azure": ("/azure/chat/completion?api-version=2024-05-01-preview",),
    "mindie": ("/mindie/v1/chat/completion",),
}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_22_an_unknown_address(make: Any, dialect: str) -> None:
    client = await make(dialect)
    for path in WRONG_ADDRESSES[dialect]:
        answer = await client.send(text(), path)
        client.check_error(answer, "not_found", "nothing is served at this address")
    await check_unharmed(client)
