"""The limit on the characters of all messages together."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault


def test_the_limit_holds_toward_a_documented_provider() -> None:
    called = dialects["mindie"].called["chat"]
    texts = ["x" * 524_287, "y"]

    def write(*texts: str, profile: str = "documented") -> Call:
        request = {"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}
        ctx = Context(profile, Call("POST", "/", request), Receipt(), Target("m", profile), request)
        return called.write_request(request, ctx)

    write(*texts)
    write(*texts, "z", profile="actual")
    with pytest.raises(Fault) as caught:
        write(*texts, "z")
    assert (caught.value.kind, caught.value.path) == ("unsupported_parameter", ("messages",))
    assert "524288" in caught.value.message
