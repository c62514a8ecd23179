"""Azure OpenAI's addresses, read and written."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.contract.json_types import JsonObject

OPENAI = dialects["openai"]
MESSAGES = [{"role": "user", "content": "hi"}]
VERSION = {"api-version": "2024-10-21"}


def read(path: str, body: JsonObject, query: dict[str, str], protocol: str = "chat") -> tuple[JsonObject, Receipt]:
    call, receipt = Call("POST", path, body, query), Receipt()
    return OPENAI.served[protocol].read_request(call, Context("actual", call, receipt)), receipt


@pytest.mark.parametrize("model", [None, "gpt 4/o", "other"])
def test_the_deployment_is_the_model(model: str | None) -> None:
    body = {"messages": MESSAGES} | ({} if model is None else {"model": model})
    hub, receipt = read("/deployments/gpt%204%2Fo/chat/completions", body, VERSION)
    assert hub == {"messages": MESSAGES, "model": "gpt 4/o"}
    assert [change.before for change in receipt.changes] == ([("model",)] if model == "other" else [])
    assert body.get("model") == model, "the client's body is left as it is"


@pytest.mark.parametrize(
    ("protocol", "path", "body"),
    [
        ("chat", "/deployments/d/chat/completions", {"messages": MESSAGES}),
        ("completions", "/deployments/d/completions", {"prompt": "x"}),
        ("embeddings", "/deployments/d/embeddings", {"input": "x"}),
        ("responses", "/responses", {"model": "d", "input": "x"}),
    ],
)
def test_a_version_is_required(protocol: str, path: str, body: JsonObject) -> None:
    for query, said in (({}, "is required"), ({"api-version": "v1"}, "must have the form YYYY-MM-DD")):
        with pytest.raises(Fault, match=said) as caught:
            read(path, body, query, protocol)
        assert (caught.value.status, caught.value.param) == (400, "api-version")
    for version in ("2024-10-21", "2025-04-01-preview"):
        assert read(path, body, {"api-version": version}, protocol)[0]["model"] == "d"


@pytest.mark.parametrize("query", [{}, {"api-version": "preview"}, {"api-version": "v1"}])
def test_addresses_of_v1_need_no_version(query: dict[str, str]) -> None:
    body = {"model": "m", "messages": MESSAGES}
    assert read("/v1/chat/completions", body, query)[0] is body


CALLS = [
    ("chat", {"messages": MESSAGES}, "/openai/deployments/a%2Fb/chat/completions"),
    ("completions", {"prompt": "x"}, "/openai/deployments/a%2Fb/completions"),
    ("embeddings", {"input": "x"}, "/openai/deployments/a%2Fb/embeddings"),
    ("responses", {"input": "x"}, "/openai/responses"),
]


@pytest.mark.parametrize(("protocol", "request_", "path"), CALLS)
def test_providers_are_called_there(protocol: str, request_: JsonObject, path: str) -> None:
    target = Target("a/b", address="azure-openai", api_version="2025-03-01-preview")
    ctx = Context("actual", Call("POST", "/", {}), Receipt(), target, {"model": "m", **request_})
    call = OPENAI.called[protocol].write_request(ctx.request, ctx)
    assert (call.path, call.query) == (path, {"api-version": "2025-03-01-preview"})
    assert call.body["model"] == "a/b"
    plain = OPENAI.called[protocol].write_request(ctx.request, ctx._replace(target=Target("a/b")))
    assert (plain.path, plain.query) == (path.replace("/openai", "").replace("/deployments/a%2Fb", ""), {})
