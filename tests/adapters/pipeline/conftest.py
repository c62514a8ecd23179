"""Attempts to feed by hand, and the bytes to feed them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Policy, Target
from dragoman.adapters.pipeline import Pipeline, TargetPlan, plan_target
from dragoman.adapters.pipeline.guard import DefectReporter, ignore_defect
from dragoman.adapters.routes import Route

ReceiveRequest: TypeAlias = Callable[..., Pipeline]
CreatePlan: TypeAlias = Callable[..., TargetPlan]


@pytest.fixture
def receive() -> ReceiveRequest:
    """A pipeline that has read a request: `receive("openai/chat", {...})`."""

    def receive(
        client: str, body: JsonObject, *, has_store: bool = False, report: DefectReporter = ignore_defect
    ) -> Pipeline:
        name, protocol = client.split("/")
        route = Route(dialects[name], protocol, dialects[name].served[protocol], "actual")
        pipeline = Pipeline(
            route,
            Call("POST", "/", {}, {"api-version": "2024-05-01-preview"}),
            has_store=has_store,
            clock=lambda: 1.0,
            report_defect=report,
        )
        pipeline.receive(orjson.dumps(body))
        return pipeline

    return receive


@pytest.fixture
def plan() -> CreatePlan:
    """The plan of a target: `plan("mindie", "chat")`."""

    def create(dialect: str = "openai", *protocols: str, policy: Policy | None = None) -> TargetPlan:
        return plan_target(
            dialect, dialects[dialect], protocols or ("chat",), Target("upstream", policy=policy or Policy())
        )

    return create
