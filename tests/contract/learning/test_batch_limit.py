"""How many inputs an endpoint embeds in one call."""

from __future__ import annotations

import json

import pytest

from dragoman.contract.exchange import Request
from dragoman.contract.json_types import JsonObject
from dragoman.contract.learning.entry import EntryNames, derive_settings, render_entry
from dragoman.contract.learning.findings import Findings
from tests.contract.learning.learned import make_learner
from tests.contract.learning.test_fields import Endpoint, make_error


class Embedder(Endpoint):
    """An endpoint that serves only embeddings, of at most `most` inputs."""

    def __init__(self, most: int, message: str) -> None:
        super().__init__(lambda body: (200, {}))
        self.most, self.message = most, message

    def _answer(self, request: Request) -> tuple[int, JsonObject]:
        if "/embeddings" not in request.url:
            return make_error(404, "no such address")
        inputs = json.loads(request.body).get("input")
        if inputs is None:
            return make_error(400, "input is required")
        if len(inputs) > self.most:
            return make_error(400, self.message)
        data = [{"object": "embedding", "index": i, "embedding": [0.5] * 8} for i in range(len(inputs))]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return 200, {"object": "list", "model": "m", "data": data, "usage": usage}


async def learn(most: int, message: str) -> Findings:
    learner = make_learner("http://endpoint/v1", dialect="openai")
    learner.transport = Embedder(most, message)
    await learner.learn()
    return learner.findings


@pytest.mark.parametrize(
    "message",
    ["batch size 2048 > maximum allowed batch size 32", "at most 32 inputs, in version 3.5 of 2026", "32 is the limit"],
)
async def test_the_number_in_the_error_is_tried(message: str) -> None:
    findings = await learn(32, message)
    assert derive_settings(findings)["limits.inputs"] == 32
    assert "limits: {inputs: 32}" in render_entry(findings, EntryNames("p"), "dragoman learn")


@pytest.mark.parametrize("message", ["too many inputs", "at most 7 inputs", "at most 100 inputs"])
async def test_a_number_that_is_not_right_is_not_believed(message: str) -> None:
    findings = await learn(32, message)
    assert "limits.inputs" not in derive_settings(findings)
    assert "limits.inputs" in findings.unknown


async def test_a_limit_as_documented_needs_no_setting() -> None:
    findings = await learn(2048, "")
    assert "limits.inputs" not in derive_settings(findings)
    assert "limits.inputs" not in findings.unknown
