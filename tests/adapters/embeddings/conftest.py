from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt

MakeContext = Callable[..., Context]


@pytest.fixture
def context() -> MakeContext:
    """A context for one verb: a client's request in hub form, toward a target."""

    def make(profile: str = "actual", request: dict[str, Any] | None = None, **target: Any) -> Context:
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
