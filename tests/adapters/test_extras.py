"""Keys that no schema knows follow one policy, at the top of a request or inside its values."""

from __future__ import annotations

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Policy, Target
from dragoman.adapters.extras import EXTRA_PARAMETERS
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import format_path
from dragoman.adapters.pipeline import Attempt, Pipeline, plan_target
from dragoman.adapters.routes import Route
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.tables import for_each

HELLO: JsonObject = {"role": "user", "content": "x"}
ANSWER: JsonObject = {"role": "assistant", "content": "y", "vendor": 1}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "description": "", "parameters": {"vendor": {}}}}
PLACES: dict[str, JsonObject] = {
    "vendor": {"vendor": 1},
    "messages[0].vendor": {"messages": [{**HELLO, "vendor": 1}]},
    "messages[0].content[0].vendor": {"messages": [{**HELLO, "content": [{"type": "text", "text": "x", "vendor": 1}]}]},
    "tools[0].vendor": {"tools": [{**TOOL, "vendor": 1}]},
    "tools[0].function.vendor": {"tools": [{**TOOL, "function": {**TOOL["function"], "vendor": 1}}]},
}
PROVIDERS = ["openai/chat", "databricks/chat", "azure/chat", "mindie/chat", "openai/responses"]


def prepare(
    provider: str, body: JsonObject, policy: str = "pass-through", client: str = "openai/chat", word: str | None = None
) -> Attempt:
    """A client's request for a provider under the policy `extra_parameters`; `word` is the client's header."""
    name, protocol = client.split("/")
    dialect = dialects[name]
    route = Route(dialect, protocol, dialect.served[protocol], "actual")
    headers = {EXTRA_PARAMETERS: word} if word else {}
    pipeline = Pipeline(route, Call("POST", "/", {}, dict(dialect.query), headers))
    pipeline.receive(orjson.dumps({"model": "m", "messages": [HELLO], **body}))
    name, protocol = provider.split("/")
    target = Target("m", policy=Policy(extra_parameters=policy))  # type: ignore[arg-type]
    return pipeline.prepare(plan_target("p", dialects[name], [protocol], target))


def is_sent(attempt: Attempt) -> bool:
    return b'"vendor":1' in orjson.dumps(attempt.calls[0].call.body)


@for_each("provider", PROVIDERS)
@for_each("place", PLACES)
def test_error_refuses_it(provider: str, place: str) -> None:
    with pytest.raises(Fault) as caught:
        prepare(provider, PLACES[place], "error")
    assert (caught.value.kind, caught.value.param) == ("extra_parameter", place)


@for_each("provider", PROVIDERS)
@for_each("place", PLACES)
def test_drop_drops_and_names_it(provider: str, place: str) -> None:
    attempt = prepare(provider, PLACES[place], "drop")
    assert not is_sent(attempt)
    assert [format_path(change.before) for change in attempt.receipt.losses] == [place]


@for_each("provider", PROVIDERS)
@for_each("place", PLACES)
def test_pass_through_sends_it_to_servers_that_accept_it(provider: str, place: str) -> None:
    attempt = prepare(provider, PLACES[place])
    sent = provider in ("openai/chat", "azure/chat", "mindie/chat")
    assert is_sent(attempt) == sent
    assert [format_path(change.before) for change in attempt.receipt.losses] == ([] if sent else [place])
    header = attempt.calls[0].call.headers.get(EXTRA_PARAMETERS)
    assert header == ("pass-through" if provider == "azure/chat" else None)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_answer_that_comes_back_is_never_refused(provider: str) -> None:
    attempt = prepare(provider, {"messages": [HELLO, ANSWER, HELLO]}, "error")
    assert not is_sent(attempt)
    assert [format_path(change.before) for change in attempt.receipt.losses] == ["messages[1].vendor"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_schemas_of_tools_may_have_any_key(provider: str) -> None:
    attempt = prepare(provider, {"tools": [TOOL]}, "error")
    assert b'"vendor":{}' in orjson.dumps(attempt.calls[0].call.body)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("word", "sent"), [(None, None), ("error", None), ("drop", False), ("pass-through", True)])
def test_the_header_of_azures_clients_decides_everywhere(place: str, word: str | None, sent: bool | None) -> None:
    def ask() -> Attempt:
        return prepare("azure/chat", PLACES[place], client="azure/chat", word=word)

    if sent is None:
        with pytest.raises(Fault) as caught:
            ask()
        assert (caught.value.kind, caught.value.param) == ("extra_parameter", place)
    else:
        assert is_sent(ask()) is sent


@pytest.mark.parametrize("word", [None, "error", "drop", "pass-through"])
def test_the_header_does_not_concern_answers_that_come_back(word: str | None) -> None:
    body: dict[str, JsonValue] = {"messages": [HELLO, ANSWER, HELLO]}
    assert is_sent(prepare("azure/chat", body, client="azure/chat", word=word))
