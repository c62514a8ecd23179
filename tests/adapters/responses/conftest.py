from __future__ import annotations

from typing import Literal, Protocol

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt


class MakeContext(Protocol):
    """Makes a context for one verb."""

    def __call__(
        self, replies: Literal["off", "report", "repair", "strict"] = "repair", profile: str = "actual"
    ) -> Context: ...


@pytest.fixture
def context() -> MakeContext:
    """A context for one verb, with a still clock and ids that count."""

    def make(replies: Literal["off", "report", "repair", "strict"] = "repair", profile: str = "actual") -> Context:
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
