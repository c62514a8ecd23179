"""What an attacker would try, through the whole proxy and in every client dialect: the classes of holes that other
gateways have had. Redirects, hosts and smuggled headers are tried in tests/proxy."""

from __future__ import annotations

import gzip
import itertools
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context
from dragoman.adapters.changes import Receipt
from dragoman.adapters.pipeline import reply_reader
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import DIALECTS

from .client import Client, MakeClient
from .house import BuildHouse, House

MIB = 1024 * 1024
HELLO = {"role": "user", "content": "hello"}


@pytest.fixture
def client(house: House, client_of: MakeClient, dialect: str) -> Client:
    return client_of(house, dialect)


def tool(parameters: JsonValue) -> JsonObject:
    return {"type": "function", "function": {"name": "f", "description": "", "parameters": parameters}}


IN_BODIES = (
    *("api_base", "base_url", "api_key", "custom_host", "extra_headers", "extra_body", "proxies", "model_list"),
    *("user_config", "fallbacks", "custom_llm_provider", "azure_endpoint", "organization", "url", "endpoint", "host"),
)
IN_HEADERS = (
    *("x-api-base", "api-base", "base-url", "x-base-url", "x-portkey-custom-host", "custom-host", "x-target-url"),
    *("helicone-target-url", "x-forwarded-host", "x-forwarded-for", "forwarded", "x-original-url", "x-rewrite-url"),
    *("proxy", "cookie"),
)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_request_chooses_where_it_goes(client: Client, dialect: str) -> None:
    async with FakeProvider("openai") as canary:
        for name in IN_BODIES:
            for value in (canary.base_url, {"base_url": canary.base_url}):
                await client.ask("openai", **{name: value})
        for name in IN_HEADERS:
            assert (await client.ask("openai", headers={name: canary.base_url})).status == 200
        assert canary.connections == 0
    asked = client.house.fakes["openai"].requests
    assert len(asked) >= len(IN_HEADERS)
    for request in asked:
        assert request.headers["Authorization"] == "Bearer sk-upstream"
        assert not set(IN_HEADERS) & {header.lower() for header in request.headers}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_schema_of_a_client_is_followed(client: Client, dialect: str) -> None:
    async with FakeProvider("openai") as canary:
        addresses = (f"{canary.origin}/x", f"//127.0.0.1:{canary.port}/x")
        for word, address in itertools.product(("$ref", "$dynamicRef", "$schema", "$id"), addresses):
            schema = {"type": "object", "properties": {"a": {word: address}}}
            form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
            for more in ({"tools": [tool(schema)]}, {"response_format": form}):
                answer = await client.ask("openai", **more)
                if word in ("$ref", "$dynamicRef"):
                    client.check_error(answer, "invalid_request")
        assert canary.connections == 0


@pytest.fixture(scope="module")
def opened() -> list[str]:
    """The files that were opened. A hook cannot be taken out again, so there is one."""
    names: list[str] = []
    sys.addaudithook(lambda event, args: names.append(str(args[0])) if event == "open" else None)
    return names


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_file_is_opened_for_a_schema(client: Client, dialect: str, opened: list[str], tmp_path: Path) -> None:
    canary = tmp_path / "canary.json"
    canary.write_text("{}")
    assert canary.as_posix() in opened
    opened.clear()
    for word, address in itertools.product(("$ref", "$dynamicRef", "$schema", "$id"), (canary.as_uri(), str(canary))):
        await client.ask("openai", tools=[tool({"type": "object", "properties": {"a": {word: address}}})])
    assert not [name for name in opened if "canary" in name]


def evil_patterns() -> Iterator[str]:
    """Two hundred expressions on which backtracking never ends."""
    inner = ("a+", "a*", "[a-z]+", "(a|a)", "(a|aa)+", ".*a", r"\w+\s?", "a{1,99}", "(?:a?){9}", r"(\d+)*")
    outer = ("({})+$", "^({})*$", "({}){{2,}}b", "(?:{})+!", "^(({})+)+$")
    for one, around, tail in itertools.product(inner, outer, ("", "b", "(?=c)", "$")):
        yield around.format(one) + tail


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_pattern_of_a_client_is_run(client: Client, dialect: str) -> None:
    """No answer would come if one were."""
    patterns = list(evil_patterns())
    assert len(set(patterns)) == 200
    for start in range(0, 200, 10):
        rules = {f"p{i}": {"pattern": one, "default": "a" * 40} for i, one in enumerate(patterns[start : start + 10])}
        answer = await client.ask("openai", tools=[tool({"type": "object", "properties": rules})])
        assert answer.status == 200


def read_distinct_schemas(count: int) -> None:
    read = dialects["openai"].served["chat"].read_request
    for i in range(count):
        schema = {"type": "object", "properties": {f"p{i}": {"type": "string", "pattern": f"^a{{{i}}}$"}}}
        body = {"model": "m", "messages": [HELLO], "tools": [tool(schema)]}
        call = Call("POST", "/v1/chat/completions", body)
        read(call, Context("actual", call, Receipt()))


@contextmanager
def memory() -> Iterator[dict[str, float]]:
    """MiB that Python has more of than before: at the end as `kept`, at the worst moment as `peak`."""
    found: dict[str, float] = {}
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield found
        kept, peak = tracemalloc.get_traced_memory()
        found |= {"kept": (kept - before) / MIB, "peak": (peak - before) / MIB}
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.heavy)])
def test_no_schema_of_a_client_is_kept(count: int) -> None:
    read_distinct_schemas(10)
    with memory() as found:
        read_distinct_schemas(count)
    assert found["kept"] < 0.5


NAMES = ("..", ".", "../x", "a/../../admin", "a%2f..", "%2e%2e", "a\\b", "a\x00b", "a\r\nb", "a?b", "a#b", "a b", "ü")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_name_of_a_model_leaves_its_place_in_the_address(
    build: BuildHouse, client_of: MakeClient, dialect: str
) -> None:
    house = await build(models={"*": {"targets": [{"provider": "databricks"}]}})
    client, fake = client_of(house, dialect), house.fakes["databricks"]
    for name in (*NAMES, "x" * 257):
        client.check_error(await client.ask(name, way=-1), "model_not_found", "model")
        assert fake.requests == []
    odd = () if dialect == "mindie" else ("a/b", "a:b@c")  # its reference does not have such names
    for name in ("x" * 256, "a.b_c-d", *odd):
        answer = await client.ask(name, way=-1)
        assert (answer.status, answer.json["model"]) == (200, name)


SPILLS = ("status-400", "status-404", "status-422", "status-429", "status-500", "status-503")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_secret_is_told(build: BuildHouse, client_of: MakeClient, dialect: str) -> None:
    """The provider's error holds its key, as careless services' errors do: the client is told it without."""
    house = await build(keys=[{"name": "me", "key": "sk-canary"}])
    client = client_of(house, dialect, "sk-canary")
    for provider, behaviour in itertools.product(DIALECTS, SPILLS):
        for stream in (False, True):
            text = f"fake:{behaviour}(message=the keys are sk-upstream and sk-canary)"
            answer = await client.ask(provider, text, stream=stream)
            assert answer.status >= 400
            assert b"the keys are" in answer.raw
            assert b"sk-" not in answer.raw
    assert b"sk-" not in house.log.getvalue()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_request_is_without_bounds(client: Client, dialect: str) -> None:
    extra = "extra_parameter" if dialect == "azure" else "invalid_request"
    vast: list[tuple[str, JsonObject]] = [
        ("invalid_request", {"messages": [HELLO] * 10_001}),
        ("invalid_request", {"stop": ["x"] * 17}),
        (extra, {"n": 10**9}),
        (extra, {"logit_bias": {str(i): 1 for i in range(1025)}}),
    ]
    for kind, more in vast:
        if dialect == "databricks" and "logit_bias" in more:
            kind = "unsupported_parameter"
        if dialect == "mindie" and "messages" not in more:
            kind = "unsupported_parameter"  # not in its reference, so judged for the provider
        client.check_error(await client.ask("openai", **more), kind, next(iter(more)))
    assert client.house.fakes["openai"].requests == []


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_request_of_countless_values_is_refused_unread(
    build: BuildHouse, client_of: MakeClient, dialect: str
) -> None:
    client = client_of(await build(), dialect)
    with memory() as found:
        for name, value in (("messages", b"{}"), ("stop", b"1"), ("tools", b"[]"), ("foo", b'""')):
            path, body = client.write("openai", **{name: "@"})
            answer = await client.send(body.replace(b'"@"', b"[%b%b]" % (b"%b," % value * 999_999, value)), path)
            client.check_error(answer, "too_large", "server.value_limit")
    assert found["peak"] < 200
    assert client.house.fakes["openai"].requests == []


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_nothing_swells_beyond_its_limit(
    build: BuildHouse, client_of: MakeClient, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of zeros packs into a kilobyte; what comes out is counted while it is unpacked."""
    monkeypatch.setattr(reply_reader, "REPLY_LIMIT", 4 * MIB)
    client = client_of(await build(server={"body_limit": 4 * MIB}), dialect)
    bomb = gzip.compress(b" " * (64 * MIB), compresslevel=1)
    for stream in (False, True):
        await client.ask("openai", stream=stream)
    with memory() as found:
        answer = await client.send(bomb, headers={"Content-Encoding": "gzip"})
        client.check_error(answer, "too_large")
    assert found["peak"] < 16
    with memory() as found:
        answer = await client.ask("openai", "fake:gzip-bomb(size=64)")
        client.check_error(answer, "upstream_invalid_response")
    assert found["peak"] < 24
