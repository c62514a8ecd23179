"""Azure sends choices without a delta while it filters a text in parallel. No policy makes an error of them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt

STREAM = (Path(__file__).parent / "fixtures" / "streams" / "azure_filters.sse").read_bytes()


@pytest.mark.parametrize("replies", ["repair", "off", "report"])
@pytest.mark.parametrize("client", ["databricks", "azure", "mindie"])
def test_a_choice_without_a_delta(client: str, replies: Literal["off", "report", "repair", "strict"]) -> None:
    target = Target("up", policy=Policy(replies=replies))
    ctx = Context("actual", Call("POST", "/", {}), Receipt(), target, {"stream": True}, lambda: 1.0, lambda _: "id")
    reader = dialects["azure"].called["chat"].read_stream(ctx)
    writer = dialects[client].served["chat"].write_stream(ctx)
    written = b"".join(map(writer.write, [*reader.receive(STREAM), *reader.close()]))
    assert written.endswith(b"data: [DONE]\n\n")
    assert "Grüße".encode() in written
