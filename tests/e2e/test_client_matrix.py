"""Every client dialect over every provider's dialect, streamed or not, whatever the provider does: what the client gets
is valid by its own dialect's schema, in the profile it is served in, and says what the provider said."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.contract.fakes.answers import REFUSAL, SENTENCE, THOUGHTS
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import DIALECTS, PROVIDERS

from .client import Answer, Client, MakeClient
from .house import BuildHouse, House

PROFILES: dict[str, dict[str, str]] = {
    "as usual": {},
    "otherwise": {"openai": "documented", "databricks": "documented", "azure": "documented", "mindie": "actual"},
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": "", "parameters": {"type": "object", "properties": {}}},
    }
    for name in ("get_weather", "get_time")
]

# behaviour: finish reason in the hub's words, text, reasoning, names of the tools called
ANSWERS: dict[str, tuple[str, str, str, list[str]]] = {
    "text": ("stop", SENTENCE, "", []),
    "length": ("length", SENTENCE[: len(SENTENCE) // 2], "", []),
    "content-filter": ("content_filter", SENTENCE, "", []),
    "refusal": ("stop", REFUSAL, "", []),
    "reasoning": ("stop", SENTENCE, THOUGHTS, []),
    "tools": ("tool_calls", "", "", ["get_weather"]),
    "parallel-tools": ("tool_calls", "", "", ["get_weather", "get_time"]),
}
ENDINGS = {("anthropic", "refusal"): "content_filter"}  # a provider's own word for the end of an answer
FINISH = {  # the words of those who do not have the hub's
    ("mindie", "documented"): {"stop": "eos_token", "content_filter": "stop_sequence"},
    ("mindie", "actual"): {"content_filter": "stop_sequence"},
}
WITHOUT_REASONING = {("databricks", "documented"), ("mindie", "documented")}
STREAMS_USAGE = {("databricks", "documented"), ("databricks", "actual"), ("mindie", "actual")}

# behaviour: kind of fault
EARLY = {
    "status-400": "invalid_request",
    "status-401": "upstream_auth_failed",
    "status-403": "permission",
    "status-404": "not_found",
    "status-408": "upstream_timeout",
    "status-413": "too_large",
    "status-422": "unprocessable",
    "status-500": "upstream_error",
    "status-503": "upstream_unavailable",
    "status-504": "upstream_timeout",
    "status-529": "upstream_unavailable",
    "rate-limit": "rate_limit",
    "model-not-found": "model_not_found",
}
NAMES_THE_MODEL = ("openai", "databricks")  # the code of their 404 is about the model
LATE = ("cut", "cut-clean", "malformed-event", "bare-text", "error-event")


@pytest.fixture(params=PROFILES)
async def client(request: pytest.FixtureRequest, build: BuildHouse, client_of: MakeClient, dialect: str) -> Client:
    house = await build(PROVIDERS, server={"profiles": PROFILES[request.param]})
    return client_of(house, dialect)


def told(dialect: str, part: JsonObject) -> tuple[str, str, list[str]]:
    """The text, the reasoning and the names of tools in a message or a delta. Only OpenAI has a place for refusals."""
    assert dialect == "openai" or "refusal" not in part
    content = part.get("content") or ""
    blocks: list[JsonValue] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = "".join(block["text"] for block in blocks if block["type"] == "text") + (part.get("refusal") or "")
    summaries = [one["text"] for block in blocks if block["type"] == "reasoning" for one in block["summary"]]
    names = [call["function"]["name"] for call in part.get("tool_calls") or () if call["function"].get("name")]
    return text, (part.get("reasoning_content") or "") + "".join(summaries), names


def expected(client: Client, behaviour: str, provider: str) -> tuple[str, str, str, list[str]]:
    finish, text, reasoning, names = ANSWERS[behaviour]
    finish = ENDINGS.get((provider, behaviour), finish)
    served = (client.dialect, client.profile)
    return FINISH.get(served, {}).get(finish, finish), text, "" if served in WITHOUT_REASONING else reasoning, names


def reports_usage(client: Client) -> bool:
    """In streams that do not ask for it."""
    return (client.dialect, client.profile) in STREAMS_USAGE


async def both(client: Client, provider: str, behaviour: str, way: int = 0) -> tuple[Answer, Answer]:
    """The answers to a request without and with streaming, at two of the dialect's addresses."""
    more = {"tools": TOOLS} if "tools" in behaviour else {}
    whole = await client.ask(provider, f"fake:{behaviour}", way=way, stream=False, **more)
    return whole, await client.ask(provider, f"fake:{behaviour}", way=way + 1, stream=True, **more)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_answers(client: Client, dialect: str, subtests: pytest.Subtests) -> None:
    has_tools = (dialect, client.profile) != ("mindie", "documented")  # its reference knows none
    behaviours = [name for name in ANSWERS if has_tools or "tools" not in name]
    rows = [(provider, behaviour) for provider in PROVIDERS for behaviour in behaviours]
    answers = await asyncio.gather(*(both(client, *row, way) for way, row in enumerate(rows)))
    for (provider, behaviour), (whole, stream) in zip(rows, answers, strict=True):
        with subtests.test(provider=provider, behaviour=behaviour):
            check_whole(client, behaviour, whole, provider)
            check_stream(client, behaviour, stream, reports_usage(client), provider)


def check_whole(client: Client, behaviour: str, answer: Answer, provider: str) -> None:
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json"), answer.raw
    assert answer.headers["x-request-id"]
    client.check(answer.json, "reply")
    (choice,) = answer.json["choices"]
    assert (choice["finish_reason"], *told(client.dialect, choice["message"])) == expected(client, behaviour, provider)
    usage = answer.json["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0


def check_stream(client: Client, behaviour: str, answer: Answer, usage: bool, provider: str) -> None:
    events = client.check_events(answer)
    choices = [choice for event in events for choice in event["choices"]]
    parts = [told(client.dialect, choice["delta"]) for choice in choices]
    text, reasoning = "".join(part[0] for part in parts), "".join(part[1] for part in parts)
    names = [name for part in parts for name in part[2]]
    (finish,) = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    assert (finish, text, reasoning, names) == expected(client, behaviour, provider)
    assert [event["choices"] != [] for event in events if event.get("usage")] == [True] * usage
    assert len({(event["id"], event["created"], event["model"]) for event in events}) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_failures_before_the_first_event(client: Client, dialect: str, subtests: pytest.Subtests) -> None:
    rows = [(provider, behaviour) for provider in PROVIDERS for behaviour in EARLY]
    answers = await asyncio.gather(*(both(client, *row) for row in rows))
    for (provider, behaviour), pair in zip(rows, answers, strict=True):
        kind = EARLY[behaviour]
        if behaviour == "status-404" and provider in NAMES_THE_MODEL:
            kind = "model_not_found"
        for answer in pair:
            with subtests.test(provider=provider, behaviour=behaviour):
                client.check_error(answer, kind, status=504 if behaviour == "status-504" else None)
                assert answer.headers.get("retry-after") == ("2" if behaviour == "rate-limit" else None)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_failures_after_the_first_event(client: Client, dialect: str, subtests: pytest.Subtests) -> None:
    rows = [(provider, behaviour) for provider in PROVIDERS for behaviour in LATE]
    answers = await asyncio.gather(*(client.ask(row[0], f"fake:{row[1]}", stream=True) for row in rows))
    for (provider, behaviour), answer in zip(rows, answers, strict=True):
        with subtests.test(provider=provider, behaviour=behaviour):
            events = client.check_broken(answer)
            said = "".join(told(dialect, choice["delta"])[0] for event in events for choice in event["choices"])
            assert said, "what came before the failure was delivered"
            assert SENTENCE.startswith(said)
            assert not any(choice["finish_reason"] for event in events for choice in event["choices"])


async def test_the_served_model_reaches_databricks_clients(house: House, client_of: MakeClient) -> None:
    for way in range(4):
        answer = await client_of(house, "databricks").ask("databricks", way=way)
        assert answer.headers["served-model-name"] == "databricks-model"
    assert "served-model-name" not in (await client_of(house, "databricks").ask("openai")).headers


@pytest.mark.parametrize(("profile", "streams"), [("documented", True), ("actual", False)])
async def test_databricks_clients_that_say_nothing_of_streaming(
    build: BuildHouse, client_of: MakeClient, profile: str, streams: bool
) -> None:
    house = await build(server={"profiles": {"databricks": profile}})
    client = client_of(house, "databricks")
    for provider in DIALECTS:
        answer = await client.ask(provider)
        if streams:
            check_stream(client, "text", answer, reports_usage(client), provider)
        else:
            check_whole(client, "text", answer, provider)
