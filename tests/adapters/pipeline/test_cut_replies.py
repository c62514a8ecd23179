"""Wherever the bytes of a provider's reply end, no part of it is a success, unless it is all that the client gets.

Chat is in `chat/test_splits.py`.
"""

from __future__ import annotations

from typing import Any

import orjson

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Target
from dragoman.adapters.pipeline import Pipeline, plan_target
from dragoman.adapters.routes import Route
from dragoman.adapters.samples import load_sample
from dragoman.adapters.sse import Event, Framer, encode
from tests.tables import for_each

HEADS = {False: {"content-type": "application/json"}, True: {"content-type": "text/event-stream"}}
ASKED: dict[str, JsonObject] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "x"}]},
    "responses": {"model": "m", "input": "x"},
    "messages": {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "x"}]},
}
PROTOCOLS = [("openai", "chat"), ("openai", "responses"), ("anthropic", "messages")]


def relay(provider: tuple[str, str], client: tuple[str, str], data: bytes, *, streamed: bool) -> tuple[str, list[Any]]:
    """The state of the exchange at its end, and what the client got: its events, or one body."""
    route = Route(dialects[client[0]], client[1], dialects[client[0]].served[client[1]], "actual")
    pipeline = Pipeline(route, Call("POST", "/", {}), clock=lambda: 1.0, new_id=lambda prefix: f"{prefix}_1")
    plan = plan_target("p", dialects[provider[0]], [provider[1]], Target("m"))
    attempt = pipeline.expect_reply(plan, {**ASKED[client[1]], "stream": streamed})
    outputs = [attempt.start_reply(0, 200, HEADS[streamed]), attempt.feed(0, data), attempt.close(0)]
    written = b"".join(output.data for output in outputs)
    framer = Framer()
    items = [*framer.feed(written), *framer.close()] if streamed else [Event(written)] if written else []
    found = [item.data for item in items if isinstance(item, Event) and item.data != b"[DONE]"]
    return attempt.outcome.state, [orjson.loads(one) for one in found]


def write_sample(dialect: str, protocol: str, *, streamed: bool) -> bytes:
    sample = load_sample(dialect, protocol)
    if not streamed:
        return orjson.dumps(sample["reply"])
    return b"".join(encode(orjson.dumps(event), event.get("type", "").encode()) for event in sample["events"])


@for_each("client", PROTOCOLS)
@for_each("provider", PROTOCOLS[1:])
@for_each("streamed", [False, True])
def test_no_cut_of_a_reply_is_a_success(client: tuple[str, str], provider: tuple[str, str], streamed: bool) -> None:
    data = write_sample(*provider, streamed=streamed)
    state, whole = relay(provider, client, data, streamed=streamed)
    assert state == "complete"
    for at in range(len(data)):
        state, found = relay(provider, client, data[:at], streamed=streamed)
        assert state == "failed" or found == whole, data[:at]
