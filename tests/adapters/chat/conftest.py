from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt

MakeContext = Callable[..., Context]


@pytest.fixture
def context() -> MakeContext:
    """A context for one verb, with a still clock and ids that count."""

    def make(profile: str = "actual", request: dict[str, Any] | None = None, **target: Any) -> Context:
        counter = iter(range(1, 1000))
        policy = Policy(**target.pop("policy", {}))
        return Context(
            profile=profile,
            call=Call("POST", "/v1/chat/completions", request or {}),
            receipt=Receipt(),
            target=Target(target.pop("model", "upstream-model"), profile=profile, policy=policy, **target),
            request=request or {},
            clock=lambda: 1_700_000_000.0,
            new_id=lambda prefix: f"{prefix}-{next(counter)}",
        )

    return make
