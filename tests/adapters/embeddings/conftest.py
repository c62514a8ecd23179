from __future__ import annotations

from typing import Protocol

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.contract.json_types import JsonObject, JsonValue


class MakeContext(Protocol):
    """Makes a context for one verb."""

    def __call__(self, profile: str = "actual", request: JsonObject | None = None, **target: JsonValue) -> Context: ...


@pytest.fixture
def context() -> MakeContext:
    """A context for one verb: a client's request in hub form, toward a target."""

    def make(profile: str = "actual", request: JsonObject | None = None, **target: JsonValue) -> Context:
        policy = Policy(**target.pop("policy", {}))
        return Context(
            profile=profile,
            call=Call("POST", "/v1/embeddings", request or {}, target.pop("query", {}), target.pop("headers", {})),
            receipt=Receipt(),
            target=Target("upstream-model", profile=profile, policy=policy, **target),
            request=request or {},
            new_id=lambda prefix: f"{prefix}-1",
        )

    return make
