"""One exchange without a network: a provider's reply, as every kind of client gets it."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.pipeline import Pipeline, plan_target
from dragoman.adapters.routes import Route
from dragoman.adapters.sse import Event, Framer

__all__ = ["Exchange", "encode_chunks", "make_reply", "run_exchange", "write_call"]

JSON, SSE = {"content-type": "application/json"}, {"content-type": "text/event-stream"}
ASKED: dict[str, JsonObject] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "x"}]},
    "responses": {"model": "m", "input": "x"},
    "completions": {"model": "m", "prompt": "x"},
    "embeddings": {"model": "m", "input": ["x"]},
}


class Exchange(NamedTuple):
    """What the client got: the bodies of its events, or the one body of a whole reply."""

    events: list[JsonObject]
    receipt: Receipt

    @property
    def lost(self) -> set[str]:
        """The last key of every lost path."""
        return {str(change.before[-1]) for change in self.receipt.losses}

    @property
    def message(self) -> JsonObject:
        """The message of a whole chat reply; of a stream, the pieces joined by key."""
        if "message" in self.events[0]["choices"][0]:
            return dict(self.events[0]["choices"][0]["message"])
        made: JsonObject = {}
        for delta in self.deltas:
            for key, value in delta.items():
                made[key] = value if made.get(key) is None or key == "role" else made[key] + value
        return made

    @property
    def deltas(self) -> list[JsonObject]:
        """The deltas of a chat stream that say anything."""
        choices = [choice for event in self.events for choice in event["choices"]]
        return [choice["delta"] for choice in choices if choice["delta"]]

    @property
    def response(self) -> JsonObject:
        """The whole response."""
        return dict(self.events[-1].get("response", self.events[-1]))


def make_reply(message: JsonObject, finish: str = "stop", **top: Any) -> bytes:
    """A provider's whole chat reply."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return orjson.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **top}
    )


def encode_chunks(*deltas: JsonObject, finish: str = "stop", **top: Any) -> bytes:
    """A provider's chat stream."""
    envelope = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", **top}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [orjson.dumps({**envelope, "choices": [choice]}) for choice in choices]
    return b"".join(b"data: " + event + b"\n\n" for event in [*events, b"[DONE]"])


def _make_pipeline(client: str, body: JsonObject) -> Pipeline:
    name, protocol = client.split("/")
    name, _, profile = name.partition(":")
    route = Route(dialects[name], protocol, dialects[name].served[protocol], profile or "actual")
    counter = iter(range(100_000))
    call = Call("POST", "/", body, {"api-version": "2024-05-01-preview"})
    return Pipeline(route, call, clock=lambda: 1.0, new_id=lambda prefix: f"{prefix}_{next(counter)}")


def run_exchange(client: str, provider: str, *reads: bytes, target: Target | None = None, **asked: Any) -> Exchange:
    """Give a provider's reply, in these reads, to a client; both are named as `openai/chat`, the client also as
    `databricks:documented/chat`."""
    streamed = reads[0].startswith(b"data:")
    request = {**ASKED[client.split("/")[1]], "stream": streamed, **asked}
    pipeline = _make_pipeline(client, request)
    name, protocol = provider.split("/")
    plan = plan_target("p", dialects[name], [protocol], target or Target("m", policy=Policy()))
    attempt = pipeline.expect_reply(plan, request)
    outputs = [attempt.start_reply(0, 200, SSE if streamed else JSON)]
    outputs += [attempt.feed(0, read) for read in reads]
    outputs.append(attempt.close(0))
    assert attempt.outcome.state == "complete", attempt.outcome
    data = b"".join(output.data for output in outputs)
    framer = Framer()
    items = [*framer.feed(data), *framer.close()] if streamed else []
    found = [one.data for one in items if isinstance(one, Event) and one.data != b"[DONE]"] if streamed else [data]
    return Exchange([orjson.loads(one) for one in found], attempt.receipt)


def write_call(client: str, provider: str, body: JsonObject, target: Target) -> tuple[JsonObject, Receipt]:
    """The body that goes to a provider for a client's request, and what the receipt says of it."""
    pipeline = _make_pipeline(client, {})
    pipeline.receive(orjson.dumps({**ASKED[client.split("/")[1]], **body}))
    name, protocol = provider.split("/")
    attempt = pipeline.prepare(plan_target("p", dialects[name], [protocol], target))
    return attempt.calls[0].call.body, attempt.receipt
