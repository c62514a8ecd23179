"""Completions end to end: clients of two dialects over the providers that serve them, and over chat that stands in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import openai
import pytest
import pytest_asyncio
from databricks.sdk import WorkspaceClient
from openai import AsyncOpenAI
from openai.types import Completion

from dragoman.contract.fakes.answers import SENTENCE
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import called, served

from .client import Answer, Client, MakeClient
from .house import BuildHouse, House

CLIENTS = served("completions")
PROVIDERS = called("completions")
STAND_INS = ("azure", "mindie", "anthropic")
PROTOCOLS = ["chat", "completions"]
PROFILES: dict[str, dict[str, str]] = {"as usual": {}, "otherwise": dict.fromkeys(CLIENTS, "documented")}

# behaviour: kind of fault
EARLY = {
    "status-400": "invalid_request",
    "status-401": "upstream_auth_failed",
    "status-404": "model_not_found",
    "status-408": "upstream_timeout",
    "status-422": "unprocessable",
    "status-500": "upstream_error",
    "status-503": "upstream_unavailable",
    "rate-limit": "rate_limit",
    "html": "upstream_invalid_response",
    "not-json": "upstream_invalid_response",
    "empty": "upstream_invalid_response",
}
LATE = ("cut", "cut-fin", "cut-clean", "malformed-event", "bare-text", "error-event")
HARMLESS = (
    "no-done", "split-utf8", "crlf", "cr", "bom", "comments", "multiline-data", "two-done", "after-done", "bare-json",
    "json-for-stream", "gzip", "created-varies", "created-float", "wrong-object", "missing-id", "role-every-delta",
    "usage-every-chunk", "usage-in-last",
)  # fmt: skip


@pytest_asyncio.fixture
async def house(build: BuildHouse) -> House:
    return await build((*PROVIDERS, *STAND_INS), protocols=PROTOCOLS, policy={"emulate_completions": True})


@pytest.fixture(params=PROFILES)
async def client(request: pytest.FixtureRequest, build: BuildHouse, client_of: MakeClient, dialect: str) -> Client:
    house = await build(
        (*PROVIDERS, *STAND_INS),
        protocols=PROTOCOLS,
        server={"profiles": PROFILES[request.param]},
        policy={"emulate_completions": True},
    )
    return client_of(house, dialect, protocol="completions")


async def ask(client: Client, model: str, behaviour: str = "text", way: int = 0, **body: JsonValue) -> JsonValue:
    whole = {"model": model, "prompt": f"fake:{behaviour}", **body}
    return await client.send(json.dumps(whole).encode(), client.paths[way % 2])


def texts_of(choices: list[JsonObject]) -> list[tuple[int, str, str]]:
    """Index, text and finish reason of every choice of a stream, in the order in which they end."""
    open_texts: dict[int, str] = {}
    found = []
    for choice in choices:
        index = choice["index"]
        open_texts[index] = open_texts.get(index, "") + choice["text"]
        if choice["finish_reason"]:
            found.append((index, open_texts.pop(index), choice["finish_reason"]))
    assert open_texts == {}
    return found


# behaviour or request: body, and what each choice says: (index of the prompt, text, finish reason)
SAYINGS: dict[str, tuple[JsonObject, list[tuple[int, str, str]]]] = {
    "text": ({}, [(0, SENTENCE, "stop")]),
    "length": ({"prompt": "fake:length"}, [(0, SENTENCE[: len(SENTENCE) // 2], "length")]),
    "content-filter": ({"prompt": "fake:content-filter"}, [(0, SENTENCE, "content_filter")]),
    "n": ({"n": 2}, [(0, SENTENCE, "stop")] * 2),
    "batch": ({"prompt": ["a", "b"]}, [(0, SENTENCE, "stop"), (1, SENTENCE, "stop")]),
    "batch of n": ({"prompt": ["a", "b"], "n": 2}, [(0, SENTENCE, "stop")] * 2 + [(1, SENTENCE, "stop")] * 2),
    "echo": ({"prompt": ["a", "b"], "echo": True}, [(0, "a" + SENTENCE, "stop"), (1, "b" + SENTENCE, "stop")]),
}
FOR_CHAT = ("text", "length", "content-filter", "n", "batch", "batch of n")


@pytest.mark.parametrize("dialect", CLIENTS)
async def test_answers(client: Client, dialect: str, subtests: pytest.Subtests) -> None:
    rows = [(provider, saying) for provider in PROVIDERS for saying in SAYINGS]
    rows += [(provider, saying) for provider in STAND_INS for saying in FOR_CHAT]
    asked = [
        ask(client, provider, "text", way, stream=stream, **SAYINGS[saying][0])
        for way, (provider, saying) in enumerate(rows)
        for stream in (False, True)
    ]
    answers = await asyncio.gather(*asked)
    for (provider, saying), whole, stream in zip(rows, answers[::2], answers[1::2], strict=True):
        with subtests.test(provider=provider, saying=saying):
            body, wanted = SAYINGS[saying]
            check_whole(client, whole, body, wanted)
            check_stream(client, stream, body, wanted)


def numbered(client: Client, body: JsonObject, wanted: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """OpenAI counts choices, Databricks prompts."""
    return [(i, *one[1:]) for i, one in enumerate(wanted)] if client.dialect == "openai" else wanted


def check_whole(client: Client, answer: Answer, body: JsonObject, wanted: list[tuple[int, str, str]]) -> None:
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json"), answer.raw
    client.check(answer.json, "reply")
    said = [(one["index"], one["text"], one["finish_reason"]) for one in answer.json["choices"]]
    assert said == numbered(client, body, wanted)
    usage = answer.json["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
    assert ("model" in answer.json) == ((client.dialect, client.profile) != ("databricks", "documented"))


def check_stream(client: Client, answer: Answer, body: JsonObject, wanted: list[tuple[int, str, str]]) -> None:
    events = client.check_events(answer)
    assert texts_of([one for event in events for one in event["choices"]]) == numbered(client, body, wanted)
    assert len({(event["id"], event["created"]) for event in events}) == 1


@pytest.mark.parametrize("dialect", CLIENTS)
async def test_failures_before_the_first_event(client: Client, dialect: str, subtests: pytest.Subtests) -> None:
    rows = [(provider, behaviour) for provider in PROVIDERS for behaviour in EARLY]
    answers = await asyncio.gather(*(ask(client, *row, stream=s) for row in rows for s in (False, True)))
    for (provider, behaviour), pair in zip(rows, zip(answers[::2], answers[1::2], strict=True), strict=True):
        for answer in pair:
            with subtests.test(provider=provider, behaviour=behaviour):
                client.check_error(answer, EARLY[behaviour])
                assert answer.headers.get("retry-after") == ("2" if behaviour == "rate-limit" else None)


@pytest.mark.parametrize("dialect", CLIENTS)
async def test_failures_after_the_first_event(client: Client, dialect: str, subtests: pytest.Subtests) -> None:
    rows = [(provider, behaviour) for provider in (*PROVIDERS, *STAND_INS) for behaviour in LATE]
    answers = await asyncio.gather(*(ask(client, *row, stream=True) for row in rows))
    for (provider, behaviour), answer in zip(rows, answers, strict=True):
        with subtests.test(provider=provider, behaviour=behaviour):
            events = client.check_broken(answer)
            said = "".join(choice["text"] for event in events for choice in event["choices"])
            assert said and SENTENCE.startswith(said)
            assert not any(choice["finish_reason"] for event in events for choice in event["choices"])


@pytest.mark.parametrize("dialect", CLIENTS)
async def test_what_does_no_harm(client: Client, dialect: str, subtests: pytest.Subtests) -> None:
    rows = [(provider, behaviour) for provider in PROVIDERS for behaviour in HARMLESS]
    answers = await asyncio.gather(*(ask(client, *row, stream=True) for row in rows))
    for (provider, behaviour), answer in zip(rows, answers, strict=True):
        with subtests.test(provider=provider, behaviour=behaviour):
            check_stream(client, answer, {}, [(0, SENTENCE, "stop")])


# OpenAI's own client


@pytest_asyncio.fixture
async def sdk(house: House) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("provider", [*PROVIDERS, *STAND_INS])
async def test_text_whole_and_streamed(sdk: AsyncOpenAI, provider: str) -> None:
    whole = await sdk.completions.create(model=provider, prompt="hello", max_tokens=20, temperature=0, stop=["END"])
    Completion.model_validate(whole.model_dump(exclude_none=True))
    assert (whole.choices[0].text, whole.choices[0].finish_reason) == (SENTENCE, "stop")
    assert whole.model == f"{provider}-model"
    stream = await sdk.completions.create(
        model=provider, prompt="hello", stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == SENTENCE
    assert [chunk.usage is not None for chunk in chunks].count(True) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("stream", [False, True])
async def test_every_choice_of_every_prompt_is_told_apart(sdk: AsyncOpenAI, provider: str, stream: bool) -> None:
    texts: dict[int, str] = {}
    prompts = ["one ", "two "]
    if stream:
        async for chunk in await sdk.completions.create(model=provider, prompt=prompts, n=2, echo=True, stream=True):
            for choice in chunk.choices:
                texts[choice.index] = texts.get(choice.index, "") + choice.text
    else:
        whole = await sdk.completions.create(model=provider, prompt=prompts, n=2, echo=True)
        texts = {choice.index: choice.text for choice in whole.choices}
    assert texts == {i: prompts[i // 2] + SENTENCE for i in range(4)}


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1, 2], [3]]])
async def test_tokens_reach_openai(house: House, sdk: AsyncOpenAI, prompt: JsonValue) -> None:
    reply = await sdk.completions.create(model="openai", prompt=prompt)
    assert len(reply.choices) == (2 if isinstance(prompt[0], list) else 1)
    assert house.fakes["openai"].requests[-1].body["prompt"] == prompt


@pytest.mark.parametrize("stream", [False, True])
async def test_log_probabilities(sdk: AsyncOpenAI, stream: bool) -> None:
    tokens: list[str] = []
    if stream:
        async for chunk in await sdk.completions.create(model="openai", prompt="hello", logprobs=2, stream=True):
            tokens += [token for one in chunk.choices if one.logprobs for token in one.logprobs.tokens or ()]
    else:
        whole = await sdk.completions.create(model="openai", prompt="hello", logprobs=2)
        told = whole.choices[0].logprobs
        assert told is not None and told.tokens is not None and told.top_logprobs is not None
        assert len(told.top_logprobs[0]) == 2
        tokens = told.tokens
    assert "".join(tokens) == SENTENCE


async def test_databricks_gets_what_it_understands(house: House, sdk: AsyncOpenAI) -> None:
    extra = {"top_k": 3, "error_behavior": "error", "use_raw_prompt": True}
    await sdk.completions.create(
        model="databricks", prompt=["a"], max_tokens=5, suffix="!", user="me", best_of=1, extra_body=extra
    )
    received = house.fakes["databricks"].requests[-1]
    assert received.path == "/serving-endpoints/databricks-model/invocations"
    wanted = {"prompt": ["a"], "max_tokens": 5, "suffix": "!", "top_k": 3, "use_raw_prompt": True, "stream": False}
    assert received.body == wanted


async def test_a_stream_that_is_asked_for_whole_is_one_to_the_client(house: House, sdk: AsyncOpenAI) -> None:
    stream = await sdk.completions.create(
        model="databricks", prompt="x", n=2, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert [[choice.index for choice in chunk.choices] for chunk in chunks] == [[0], [1], []]
    assert chunks[-1].usage is not None
    received = house.fakes["databricks"].requests[-1]
    assert (received.body["stream"], received.headers["Accept"]) == (False, "application/json")
    house.fakes["databricks"].script("rate-limit(retry_after=60)")
    with pytest.raises(openai.RateLimitError):
        await sdk.completions.create(model="databricks", prompt="x", n=2, stream=True)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_openais_client_at_databricks_addresses(house: House, provider: str) -> None:
    base_url = f"{house.proxy.url}/serving-endpoints"
    async with AsyncOpenAI(base_url=base_url, api_key="any", max_retries=0) as sdk:
        whole = await sdk.completions.create(model=provider, prompt=["a", "b"])
        assert [(one.index, one.text) for one in whole.choices] == [(0, SENTENCE), (1, SENTENCE)]
        stream = await sdk.completions.create(model=provider, prompt="fake:cut", stream=True)
        with pytest.raises(openai.APIError):
            async for _ in stream:
                pass


@pytest.mark.parametrize("provider", [*PROVIDERS, *STAND_INS])
@pytest.mark.parametrize("prefix", ["", "/databricks"])
async def test_a_prompt_at_the_address_of_an_endpoint(
    house: House, client_of: MakeClient, provider: str, prefix: str
) -> None:
    client = client_of(house, "databricks", protocol="completions")
    path = f"{prefix}/serving-endpoints/{provider}/invocations"
    whole = await client.send(json.dumps({"prompt": "hello"}).encode(), path)
    check_whole(client, whole, {}, [(0, SENTENCE, "stop")])
    stream = await client.send(json.dumps({"prompt": "hello", "stream": True}).encode(), path)
    check_stream(client, stream, {}, [(0, SENTENCE, "stop")])
    broken = await client.send(json.dumps({"prompt": "fake:cut", "stream": True}).encode(), path)
    client.check_broken(broken)
    refused = await client.send(json.dumps({"prompt": [[1]]}).encode(), path)
    client.check_error(refused, "invalid_request", "prompt[0]")


@pytest.mark.parametrize("provider", [*PROVIDERS, *STAND_INS])
async def test_databricks_own_client(house: House, monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)

    def ask() -> JsonValue:
        workspace = WorkspaceClient(host=house.proxy.url, token="any")
        return workspace.serving_endpoints.query(provider, prompt="hello", max_tokens=20, stop=["END"])

    reply = await asyncio.to_thread(ask)
    assert [(choice.index, choice.text) for choice in reply.choices] == [(0, SENTENCE)]
    assert reply.object.value == "text_completion"
    assert reply.usage.total_tokens > 0


async def test_chat_that_stands_in_is_a_loss(house: House, sdk: AsyncOpenAI) -> None:
    raw = await sdk.completions.with_raw_response.create(model="mindie", prompt="hello", max_tokens=9)
    assert 'converted;path="prompt"' in raw.headers["x-dragoman-changes"]
    body = house.fakes["mindie"].requests[-1].body
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert body["max_tokens"] == 9


@pytest.mark.parametrize(("body", "param"), [
    ({"prompt": None}, "prompt"),
    ({"prompt": "x", "echo": True}, "echo"),
    ({"prompt": "x", "suffix": "s"}, "suffix"),
    ({"prompt": "x", "logprobs": 0}, "logprobs"),
    ({"prompt": "x", "best_of": 2}, "best_of"),
])  # fmt: skip
async def test_what_chat_cannot_stand_in_for(house: House, sdk: AsyncOpenAI, body: JsonObject, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await sdk.completions.create(model="mindie", **body)
    assert (caught.value.param, caught.value.code) == (param, "unsupported_parameter")
    assert house.fakes["mindie"].requests == []


@pytest.mark.parametrize("stream", [False, True])
async def test_prompts_of_tokens_become_text(house: House, sdk: AsyncOpenAI, stream: bool) -> None:
    hello, world = 15339, 1917
    answer = await sdk.completions.create(model="mindie", prompt=[[hello], [hello, world]], stream=stream)
    choices = [choice async for chunk in answer for choice in chunk.choices] if stream else answer.choices
    assert {choice.index for choice in choices} == {0, 1}
    asked = sorted(received.body["messages"][0]["content"] for received in house.fakes["mindie"].requests)
    assert asked == ["hello", "hello world"]


async def test_several_prompts_are_several_questions(house: House, sdk: AsyncOpenAI) -> None:
    raw = await sdk.completions.with_raw_response.create(model="mindie", prompt=["a", "b", "fake:length"], n=2)
    reply, one = raw.parse(), await sdk.completions.create(model="mindie", prompt="a", n=2)
    assert [choice.index for choice in reply.choices] == [0, 1, 2, 3, 4, 5]
    assert [choice.finish_reason for choice in reply.choices] == ["stop"] * 4 + ["length"] * 2
    assert reply.usage is not None and one.usage is not None
    assert reply.usage.prompt_tokens > 2 * one.usage.prompt_tokens
    assert all(f'converted;path="prompt[{i}]"' in raw.headers["x-dragoman-changes"] for i in range(3))
    asked = sorted(received.body["messages"][0]["content"] for received in house.fakes["mindie"].requests)
    assert asked == ["a", "a", "b", "fake:length"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_fault_of_one_prompt_is_all_there_is(house: House, sdk: AsyncOpenAI, stream: bool) -> None:
    wrong = "fake:mindie-422(param=messages[0].content)"
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        await sdk.completions.create(model="mindie", prompt=["a", wrong], stream=stream)
    assert caught.value.param == "prompt[1]"


async def test_a_stream_of_several_prompts(house: House, sdk: AsyncOpenAI) -> None:
    stream = await sdk.completions.create(
        model="mindie", prompt=["a", "b"], stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert [[choice.index for choice in chunk.choices] for chunk in chunks] == [[0], [1], []]
    assert chunks[-1].usage is not None and chunks[-1].usage.completion_tokens > 0
    assert [received.body.get("stream") for received in house.fakes["mindie"].requests] == [None, None]


async def test_a_fault_in_the_message_is_told_of_the_prompt(house: House, sdk: AsyncOpenAI) -> None:
    house.fakes["mindie"].script("mindie-422(param=messages[0].content)")
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        await sdk.completions.create(model="mindie", prompt="x")
    assert caught.value.param == "prompt"


async def test_without_the_switch_nothing_stands_in(build: BuildHouse) -> None:
    house = await build()
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as sdk:
        with pytest.raises(openai.BadRequestError) as caught:
            await sdk.completions.create(model="mindie", prompt="x")
    assert caught.value.code == "unsupported_protocol"
    assert "emulate_completions" in caught.value.message
    assert house.fakes["mindie"].requests == []


# Bad inputs

BAD: list[tuple[JsonObject, str, str, tuple[str, ...]]] = [
    # body, client, kind of fault, words
    ({"prompt": ["a", 1]}, "openai", "invalid_request", ("prompt[1]",)),
    ({"prompt": []}, "openai", "invalid_request", ("prompt",)),
    ({}, "openai", "invalid_request", ("prompt is required",)),
    ({"prompt": "x", "n": 0}, "openai", "invalid_request", ("n must be at least 1",)),
    ({"prompt": "x", "best_of": 1, "n": 2}, "openai", "invalid_request", ("best_of must be at least n",)),
    ({"prompt": "x", "best_of": 2, "stream": True}, "openai", "invalid_request", ("best_of",)),
    ({"prompt": "x", "logprobs": 6}, "openai", "invalid_request", ("logprobs must be at most 5",)),
    ({"prompt": "x", "stop": ["a"] * 5}, "openai", "invalid_request", ("stop",)),
    ({"prompt": "x", "stream_options": {}}, "openai", "invalid_request", ("stream_options requires stream",)),
    ({"prompt": "x", "api_key": "k"}, "openai", "extra_parameter", ("api_key",)),
    ({"prompt": [[1]]}, "databricks", "invalid_request", ("prompt[0]",)),
    ({"prompt": None}, "databricks", "invalid_request", ("prompt",)),
    ({"prompt": "x", "max_tokens": 0}, "databricks", "invalid_request", ("max_tokens",)),
    ({"prompt": "x", "top_p": 0}, "databricks", "invalid_request", ("top_p",)),
    ({"prompt": "x", "n": 6}, "databricks", "invalid_request", ("n must be at most 5",)),
    ({"prompt": "x", "error_behavior": "ignore"}, "databricks", "invalid_request", ("error_behavior",)),
]


@pytest.mark.parametrize(("body", "dialect", "kind", "words"), BAD)
async def test_bad_requests_never_reach_a_provider(
    house: House, client_of: MakeClient, body: JsonObject, dialect: str, kind: str, words: tuple[str, ...]
) -> None:
    client = client_of(house, dialect, protocol="completions")
    answer = await client.send(json.dumps({"model": "openai", **body}).encode())
    client.check_error(answer, kind, *words)
    assert house.fakes["openai"].requests == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_provider_that_speaks_only_responses_answers_prompts(build: BuildHouse, stream: bool) -> None:
    house = await build(("openai",), protocols=["responses"], policy={"emulate_completions": True})
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        answer = await client.completions.create(model="openai", prompt=["a", "b"], stream=stream, max_tokens=99)
        choices = [c async for chunk in answer for c in chunk.choices] if stream else answer.choices  # type: ignore[union-attr]
    texts = ["".join(choice.text for choice in choices if choice.index == index) for index in range(2)]
    assert texts == [SENTENCE, SENTENCE]
