"""Events whose choices are none: a fault of the provider, in every dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Context
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import Event


@pytest.mark.parametrize("dialect", ["openai", "databricks", "azure", "mindie"])
@pytest.mark.parametrize("replies", ["off", "report", "repair"])
@pytest.mark.parametrize("choice", [1, "x", None, [], {"index": "0", "delta": {}}, {"index": [0], "delta": {}}])
def test_choices_that_cannot_be_told_apart(
    dialect: str, replies: str, choice: Any, context: Callable[..., Context]
) -> None:
    reader = dialects[dialect].called["chat"].read_stream(context(policy={"replies": replies}))
    [fault] = reader.feed(Event(orjson.dumps({"id": "1", "choices": [choice]})))
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.code) == ("upstream_invalid_response", "upstream_invalid_event")
    assert "a choice that is none" in fault.message
    assert reader.ended
