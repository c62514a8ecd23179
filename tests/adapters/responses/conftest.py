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

    def make(replies: Any = "repair", profile: str = "actual") -> Context:
        counter = iter(range(1, 1000))
        request = {"model": "m", "input": "hello", "stream": True}
        return Context(
            profile,
            Call("POST", "/v1/responses", request),
            Receipt(),
            Target("upstream-model", profile=profile, policy=Policy(replies=replies)),
            request,
            lambda: 1_700_000_000.0,
            lambda prefix: f"{prefix}_{next(counter)}",
        )

    return make
