"""Databricks' own client through a real socket, over each provider's dialect.

It knows no finish reason (it looks for `finishReason`) and no streams.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from databricks.sdk import WorkspaceClient, errors
from databricks.sdk.clock import Clock
from databricks.sdk.config import Config
from databricks.sdk.service.serving import ChatMessage, ChatMessageRole, QueryEndpointResponse

from dragoman.contract.json_types import JsonValue
from tests.dialects import DIALECTS

from .house import BuildHouse, House

HELLO = ChatMessage(role=ChatMessageRole.USER, content="hello")


class Hasty(Clock):
    """A clock that runs ahead instead of waiting, so that the client soon tires of retrying."""

    def __init__(self) -> None:
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


class Workspace:
    """The client, asked in a thread: it is a synchronous one."""

    def __init__(self, url: str, token: str = "any") -> None:
        """Asks the server for its settings, so make it in a thread too."""
        config = Config(host=url, token=token, retry_timeout_seconds=1, clock=Hasty())
        self._client = WorkspaceClient(config=config)

    async def query(self, model: str, *messages: ChatMessage, **more: JsonValue) -> QueryEndpointResponse:
        ask = self._client.serving_endpoints.query
        return await asyncio.to_thread(ask, model, messages=list(messages) or [HELLO], **more)

    async def last_error(self, model: str, message: ChatMessage) -> errors.DatabricksError:
        """The one after which it gave up trying."""

        def ask() -> BaseException | None:
            with pytest.raises(TimeoutError) as caught:
                self._client.serving_endpoints.query(model, messages=[message])
            return caught.value.__cause__

        cause = await asyncio.to_thread(ask)
        assert isinstance(cause, errors.DatabricksError)
        return cause


@pytest.fixture
async def workspace(house: House, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return await asyncio.to_thread(Workspace, house.proxy.url)


def told(behaviour: str) -> ChatMessage:
    return ChatMessage(role=ChatMessageRole.USER, content=f"fake:{behaviour} go")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_chat(house: House, workspace: Workspace, dialect: str) -> None:
    system = ChatMessage(role=ChatMessageRole.SYSTEM, content="be brief")
    reply = await workspace.query(dialect, system, HELLO, max_tokens=20, temperature=0.5, stop=["END"])
    assert reply.object is not None, "the client knows this word"
    assert reply.id
    assert reply.model == f"{dialect}-model"
    assert reply.usage is not None
    assert reply.usage.completion_tokens is not None
    assert reply.choices is not None
    message = reply.choices[0].message
    assert message is not None
    assert message.role is ChatMessageRole.ASSISTANT
    assert message.content is not None
    assert message.content.startswith("The dragoman bows")
    assert reply.served_model_name == ("databricks-model" if dialect == "databricks" else None)
    (received,) = house.fakes[dialect].requests
    assert received.body["messages"][0] == {"role": "system", "content": "be brief"}
    assert received.body["max_tokens"] == 20


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_several_choices(workspace: Workspace, dialect: str) -> None:
    reply = await workspace.query(dialect, n=2)
    assert [choice.index for choice in reply.choices or ()] == [0, 1]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_reasoning_stands_in_the_content(workspace: Workspace, dialect: str) -> None:
    reply = await workspace.query(dialect, told("reasoning"))
    assert reply.choices is not None
    message = reply.choices[0].message
    assert message is not None
    blocks: Any = message.content
    assert [block["type"] for block in blocks] == ["reasoning", "text"]


ERRORS = {
    "status-400": (errors.InvalidParameterValue, "INVALID_PARAMETER_VALUE"),
    "status-404": (errors.ResourceDoesNotExist, "RESOURCE_DOES_NOT_EXIST"),
    "status-422": (errors.InvalidParameterValue, "INVALID_PARAMETER_VALUE"),
    "status-500": (errors.InternalError, "INTERNAL_ERROR"),
    "status-504": (errors.DeadlineExceeded, "DEADLINE_EXCEEDED"),
    "status-401": (errors.DatabricksError, "INTERNAL_ERROR"),
    "cut-before": (errors.DatabricksError, "INTERNAL_ERROR"),
}
RETRIED = {"rate-limit": errors.RequestLimitExceeded, "status-503": errors.TemporarilyUnavailable}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_errors_keep_their_class(workspace: Workspace, dialect: str) -> None:
    for behaviour, (error, code) in ERRORS.items():
        with pytest.raises(errors.DatabricksError) as caught:
            await workspace.query(dialect, told(behaviour))
        assert (caught.type, caught.value.error_code) == (error, code)
        assert str(caught.value)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_the_client_tries_again(workspace: Workspace, dialect: str) -> None:
    for behaviour, error in RETRIED.items():
        last = await workspace.last_error(dialect, told(behaviour))
        assert type(last) is error
        assert last.retry_after_secs == (2 if behaviour == "rate-limit" else 1)  # without a header it takes 1


async def test_what_is_wrong_with_a_request(house: House, workspace: Workspace) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="temperature must be at most 2, got 3"):
        await workspace.query("openai", temperature=3)
    with pytest.raises(errors.InvalidParameterValue, match=r"messages\[1\].*system message"):
        await workspace.query("openai", HELLO, ChatMessage(role=ChatMessageRole.SYSTEM, content="late"))
    with pytest.raises(errors.ResourceDoesNotExist, match="did you mean openai"):
        await workspace.query("opena")
    assert not [fake.requests for fake in house.fakes.values() if fake.requests]


async def test_the_key(build: BuildHouse, workspace: Workspace) -> None:
    house = await build(keys=[{"name": "me", "key": "sk-mine"}])
    mine, other = [await asyncio.to_thread(Workspace, house.proxy.url, key) for key in ("sk-mine", "sk-other")]
    assert (await mine.query("openai")).choices
    with pytest.raises(errors.Unauthenticated) as caught:
        await other.query("openai")
    assert caught.value.error_code == "UNAUTHENTICATED"
