"""An engine process over a tiny model with a minimal service: no template, greedy sampling.

The environment variable SLOW adds that many seconds to each step. The message `refuse` is rejected. After the first
chunk, `defect` raises an unexpected error, `fault` raises a Fault, and `die` ends the process.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from dragoman.adapters.call import JsonObject, new_id
from dragoman.adapters.faults import Fault
from dragoman.local_engine.engine import Engine, EventBatch
from dragoman.local_engine.event_streams import EventStreams
from dragoman.local_engine.generation import Finished, GenerationRequest, SamplingParams
from dragoman.local_engine.process.interface import ServiceSettings
from dragoman.local_engine.process.main import main


class PlainService:
    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name
        self._streams = EventStreams(engine, asyncio.get_running_loop())
        deliver, pause = engine.deliver, float(os.environ.get("SLOW", "0"))

        def deliver_slowly(batch: EventBatch) -> None:
            time.sleep(pause)
            deliver(batch)

        engine.deliver = deliver_slowly

    async def chat(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        text = str(request["messages"][-1]["content"])
        if text == "refuse":
            raise Fault("invalid_request", "this was refused", ("messages", 0, "content"), code="refused")
        head = {"id": new_id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": self.name}
        max_tokens = request.get("max_completion_tokens") or request.get("max_tokens")
        generation = GenerationRequest(tuple(text.encode()), SamplingParams(temperature=0), max_tokens, ignore_eos=True)
        async with aclosing(self._streams.run(generation)) as events:
            async for event in events:
                choice: JsonObject = {"index": 0, "delta": {}, "finish_reason": "length"}
                if not isinstance(event, Finished):
                    delta = {"role": "assistant", "content": event.text}
                    choice = {"index": 0, "delta": delta, "finish_reason": None}
                yield {**head, "choices": [choice]}
                self._fail_on_request(text)

    def _fail_on_request(self, text: str) -> None:
        if text == "defect":
            raise RuntimeError("a defect")
        if text == "fault":
            raise Fault("overloaded", "closing", code="closing")
        if text == "die":
            os._exit(7)

    async def completions(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        yield {
            "object": "text_completion",
            "choices": [{"index": 0, "text": request["prompt"], "finish_reason": "stop"}],
        }

    async def embeddings(self, request: JsonObject) -> JsonObject:
        raise Fault("invalid_request", "this model has no embeddings", ("model",))

    def collect_reply(self, chunks: Iterable[JsonObject]) -> JsonObject:
        received = list(chunks)
        text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in received)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": None,
            "finish_reason": "length",
        }
        usage = {"prompt_tokens": 1, "completion_tokens": len(received), "total_tokens": 1 + len(received)}
        return {**received[0], "object": "chat.completion", "choices": [choice], "usage": usage}

    def statistics(self) -> JsonObject:
        return self._engine.statistics()

    def close(self) -> None:
        self._engine.close()


async def load_plain_service(settings: ServiceSettings) -> PlainService:
    engine = await asyncio.to_thread(Engine.load, settings.model_dir, settings.options)
    return PlainService(engine, settings.name or settings.model_dir.name)


if __name__ == "__main__":
    sys.exit(main(load=load_plain_service))
