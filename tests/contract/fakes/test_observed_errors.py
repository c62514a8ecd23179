"""Error forms that real services send."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dragoman.contract.json_types import JsonObject

from .client import ChatClient


@pytest.mark.parametrize(
    ("name", "status", "has_form"),
    [
        ("azure-422-a", 422, lambda body: body["detail"] == {"loc": ["body", "user"], "value": "fake"}),
        ("azure-422-b", 422, lambda body: body["detail"]["input"] == "fake" and "error" not in body),
        ("azure-422-c", 422, lambda body: body["detail"][0]["loc"] == ["body", "user"]),
        ("azure-422-d", 422, lambda body: body["detail"][0]["type"] == "extra_forbidden"),
        ("azure-422-e", 422, lambda body: body["detail"].startswith("Extra parameters ['user']")),
        ("azure-422-f", 422, lambda body: json.loads(body["error"]["message"])["detail"][0]["input"] == "fake"),
        ("azure-400-extra", 400, lambda body: "not allowed" in body["detail"]),
        ("azure-400-header", 400, lambda body: "EXTRA_PARAMETERS option ignore" in body["detail"]),
        ("azure-400-numeric", 400, lambda body: body["code"] == 400),
        ("azure-content-filter", 400, lambda body: body["code"] == "content_filter"),
        ("azure-content-filter-nested", 400, lambda body: body["error"]["param"] == "prompt"),
        ("azure-generic", 500, lambda body: body["error"]["innererror"]["code"] == "ModelTimeout"),
        ("databricks-external", 400, lambda body: body["external_model_message"]["error_code"] == "BAD_REQUEST"),
        ("databricks-unknown-field", 400, lambda body: 'unknown field "user"' in body["message"]),
        ("mindie-422", 422, lambda body: body["error"].startswith("Parameter top_p")),
        ("mindie-422-type", 422, lambda body: body["type"] == "Input Validation Error"),
        ("mindie-424", 424, lambda body: body["error_type"] == "Generation Error"),
        ("mindie-413", 413, lambda body: list(body) == ["message"]),
        ("openai-error", 400, lambda body: list(body["error"]) == ["message", "type", "param", "code"]),
        ("openai-string-error", 400, lambda body: body["error"] == "user is wrong"),
    ],
)
async def test_observed_error_has_its_form(
    name: str, status: int, has_form: Callable[[JsonObject], bool], client: ChatClient
) -> None:
    whole, stream = await client.send_both(name, name.split("-")[0])
    assert whole.status == stream.status == status and whole.raw == stream.raw
    assert has_form(whole.body), whole.body


@pytest.mark.parametrize(
    ("name", "status", "raw", "kind"),
    [
        ("databricks-text", 500, b"INTERNAL_ERROR: the fake endpoint failed", "text/plain"),
        ("databricks-html", 502, b"<pre>upstream connect error</pre>", "text/html"),
        ("databricks-empty", 503, b"", ""),
        ("mindie-500-text", 500, b"Server internal error", "application/json"),
        ("mindie-404-empty", 404, b"", ""),
    ],
)
async def test_observed_error_need_not_be_json(
    name: str, status: int, raw: bytes, kind: str, client: ChatClient
) -> None:
    whole, _ = await client.send_both(name, name.split("-")[0])
    assert whole.status == status and (raw in whole.raw if raw else whole.raw == b"")
    assert whole.headers.get("Content-Type", "").startswith(kind)


async def test_argument_sets_the_named_parameter(client: ChatClient) -> None:
    whole, _ = await client.send_both("azure-422-d(param=logprobs)", "azure")
    assert whole.body["detail"][0]["loc"] == ["body", "logprobs"]
