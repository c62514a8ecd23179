"""The fates in docs/losses.md follow from what the adapters do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.dialect import Called, Dialect
from dragoman.contract.json_types import JsonValue
from tests.dialects import DIALECTS
from tools.docs.questions import Question, make_questions
from tools.docs.reply_losses import reply_table, stream_table
from tools.docs.shape import format_place
from tools.docs.trials import SILENT, Client, NotInDialect, trace_fate

OPENAI = Client(dialects["openai"], "actual")


def ask(body: JsonObject, *path: str | int) -> Question:
    return Question({"model": "m", "messages": [{"role": "user", "content": "hello"}], **body}, path)


@pytest.mark.parametrize(
    ("provider", "body", "word"),
    [
        ("openai", {"temperature": 1}, "carried"),
        ("openai", {"top_k": 5}, "carried"),
        ("databricks", {"max_completion_tokens": 5}, "as `max_tokens`"),
        ("databricks", {"seed": 5}, "refused (lost)"),
        ("databricks", {"top_p": 0}, "refused (nearest value)"),
        ("databricks", {"user": "me"}, "lost"),
        ("databricks", {"reasoning_effort": "max"}, "carried"),
        ("azure", {"stop": "END"}, "converted"),
        ("azure", {"parallel_tool_calls": True}, "not needed"),
        ("mindie", {"reasoning_effort": "high"}, "converted, less exact"),
        ("mindie", {"functions": [{"name": "f"}]}, "refused (lost)"),
    ],
)
def test_fates(provider: str, body: JsonObject, word: str) -> None:
    assert trace_fate(OPENAI, dialects[provider], ask(body, *body)) == word


def test_a_value_that_no_policy_accepts_is_refused() -> None:
    question = ask({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "tools", 0)
    assert trace_fate(OPENAI, dialects["azure"], question) == "refused"


def test_a_request_that_the_client_may_not_send_is_an_error() -> None:
    with pytest.raises(NotInDialect, match="temperature"):
        trace_fate(OPENAI, dialects["openai"], ask({"temperature": 3}, "temperature"))


@pytest.mark.parametrize("altered", [{}, {"seed": 6}])
def test_a_change_without_a_record_is_found(altered: JsonObject) -> None:
    def write_request(request: JsonObject, ctx: Context) -> Call:
        return Call("POST", "/", {key: value for key, value in request.items() if key != "seed"} | altered)

    called: Called = replace(dialects["openai"].called["chat"], write_request=write_request)
    careless: Dialect = replace(dialects["openai"], called={"chat": called})
    assert trace_fate(OPENAI, careless, ask({"seed": 5}, "seed")) == SILENT
    assert trace_fate(OPENAI, careless, ask({"n": 5}, "n")) == "carried"


@pytest.mark.parametrize("name", DIALECTS)
def test_questions_are_requests_that_clients_may_send(name: str) -> None:
    client = Client(dialects[name], dialects[name].served_profile)
    asked = make_questions(name, client.profile)
    for some in asked.values():
        for question in some:
            trace_fate(
                client, dialects["openai"], question
            )  # raises NotInDialect for a request that no client may send
    assert {"temperature", "top_p", "max_tokens", "stream"} <= {format_place(place) for place in asked}


def test_tables_of_answers() -> None:
    clients = [Client(dialects["databricks"], "actual"), Client(dialects["mindie"], "documented")]
    whole, streamed = "\n".join(reply_table(clients)), "\n".join(stream_table(clients))
    assert "| `reasoning_content` | as `content[].summary[].text` | lost |" in whole
    assert "| `finish_reason` `stop` | carried | `eos_token` |" in whole
    assert "| `usage` | with the finish reason | lost |" in streamed


def test_tables_of_other_protocols() -> None:
    clients = [Client(dialects["openai"], "actual"), Client(dialects["databricks"], "documented")]
    whole, streamed = ("\n".join(table(clients, "completions")) for table in (reply_table, stream_table))
    assert "| `model` | carried | lost |" in whole
    assert "| `usage` | carried | with the finish reason |" in streamed
    assert reply_table(clients, "embeddings") == []


def test_chat_emulates_completions() -> None:
    def word(path: str, **body: JsonValue) -> str:
        return trace_fate(OPENAI, dialects["mindie"], Question({"model": "m", **body}, (path,), protocol="completions"))

    assert word("prompt", prompt=["a", "b"]) == "converted, less exact"
    assert word("prompt", prompt=[1]) == "refused"
    assert word("echo", prompt="a", echo=True) == "refused (lost)"
    assert word("seed", prompt="a", seed=1) == "carried"
