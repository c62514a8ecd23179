"""Routes: which address serves which protocol of which dialect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call
from dragoman.adapters.faults import Fault
from dragoman.adapters.routes import RouteTable
from dragoman.contract.json_types import JsonValue
from tests.tables import for_each


def test_what_is_served_follows_from_the_dialects() -> None:
    routes = RouteTable(dialects, {"azure": "documented"})
    found = {}
    for path in (
        "/v1/chat/completions",
        "/openai/v1/chat/completions",
        "/serving-endpoints/chat/completions",
        "/serving-endpoints/m/invocations",
        "/databricks/serving-endpoints/m/invocations",
        "/azure/chat/completions",
        "/mindie/v1/chat/completions",
    ):
        route = routes.match(path)
        assert route is not None
        found[path] = (route.dialect.name, route.profile, route.strip_prefix(path))
    assert found == {
        "/v1/chat/completions": ("openai", "actual", "/v1/chat/completions"),
        "/openai/v1/chat/completions": ("openai", "actual", "/v1/chat/completions"),
        "/serving-endpoints/chat/completions": ("databricks", "actual", "/serving-endpoints/chat/completions"),
        "/serving-endpoints/m/invocations": ("databricks", "actual", "/serving-endpoints/m/invocations"),
        "/databricks/serving-endpoints/m/invocations": ("databricks", "actual", "/serving-endpoints/m/invocations"),
        "/azure/chat/completions": ("azure", "documented", "/chat/completions"),
        "/mindie/v1/chat/completions": ("mindie", "documented", "/v1/chat/completions"),
    }
    for path in ("/serving-endpoints//invocations", "/serving-endpoints/a/b/invocations", "/serving-endpoints/m"):
        assert routes.match(path) is None
    assert RouteTable({"openai": dialects["openai"]}, {}).match("/azure/chat/completions") is None


OPENAI = ": dragoman has no such API; to openai clients it serves /v1/chat/completions, /v1/responses, /v1/completions,"
UNKNOWN = {
    "/v1/chat/completion": "; did you mean /v1/chat/completions?",
    "/v1/chat/completions/": "; did you mean /v1/chat/completions?",
    "/v1/v1/chat/completions": "; did you mean /v1/chat/completions?",
    "/responses": "; did you mean /v1/responses?",
    "/v1/embedding": "; did you mean /v1/embeddings?",
    "/serving-endpoints/m/invocation": "; did you mean /serving-endpoints/{name}/invocations?",
    "/openai/deployments/m/images/generations": ": dragoman has no such API; to openai clients it serves "
    "/openai/deployments/{name}/chat/completions,",
    "/models/images/embeddings": ": dragoman has no such API; to azure clients it serves /models/chat/completions,",
    "/api/2.0/clusters/list": ": dragoman has no such API; to databricks clients it serves /serving-endpoints/",
    "/api/chat": OPENAI,
    "/.well-known/openid-configuration": OPENAI,
    "/": OPENAI,
    "": OPENAI,
}
APIS = """images/generations images/edits audio/speech audio/transcriptions moderations files uploads batches assistants
threads threads/t/messages realtime realtime/sessions realtime/client_secrets conversations vector_stores
fine_tuning/jobs evals containers videos responses/compact responses/input_tokens complete rerank"""


@for_each("path", [*UNKNOWN, *(f"/v1/{api}" for api in APIS.split())])
def test_a_request_for_another_api_is_answered_with_what_is_served(path: str) -> None:
    fault = RouteTable(dialects, {}).unknown_path(path)
    assert (fault.status, fault.code) == (404, "unknown_url")
    assert fault.message.startswith("nothing is served at this address" + UNKNOWN.get(path, OPENAI))


TASKS = {"vectors": "embeddings"}


@pytest.mark.parametrize(
    ("path", "body", "protocol"),
    [
        ("/serving-endpoints/m/invocations", {"messages": []}, "chat"),
        ("/databricks/serving-endpoints/m/invocations", {"input": [{}]}, "responses"),
        ("/serving-endpoints/chat/completions", {"input": [{}]}, "chat"),
        ("/serving-endpoints/responses", {"messages": []}, "responses"),
        ("/v1/chat/completions", {"input": [{}]}, "chat"),
    ],
)
def test_the_body_chooses_among_the_protocols_of_an_address(path: str, body: JsonValue, protocol: str) -> None:
    route = RouteTable(dialects, {}).match(path)
    assert route is not None
    asked = route.resolve(Call("POST", route.strip_prefix(path), body), TASKS.get)
    assert (asked.protocol, asked.dialect, asked.profile) == (protocol, route.dialect, route.profile)


def test_a_protocol_that_is_not_served_is_named() -> None:
    dialect = dialects["databricks"]
    fewer = replace(dialect, served={name: dialect.served[name] for name in ("chat", "responses")})
    route = RouteTable({"databricks": fewer}, {}).match("/serving-endpoints/vectors/invocations")
    assert route is not None
    with pytest.raises(
        Fault, match="asks for embeddings, which this address does not serve; it serves chat, responses"
    ):
        route.resolve(Call("POST", "/serving-endpoints/vectors/invocations", {"input": [{}]}), TASKS.get)


def test_a_header_that_a_dialect_requires_decides_which_dialect_answers_for_an_address() -> None:
    marked = replace(dialects["databricks"], headers={"x-marker": "1"})
    routes = RouteTable({"openai": dialects["openai"], "databricks": marked}, {})
    assert routes.closest_route("/v1/models").dialect.name == "openai"
    assert routes.closest_route("/v1/models", {"x-marker": "1"}).dialect.name == "databricks"
    assert "to databricks clients it serves" in routes.unknown_path("/v1/files", {"x-marker": "1"}).message
    assert "to openai clients it serves" in routes.unknown_path("/v1/files").message
