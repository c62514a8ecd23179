"""An engine process over a tiny model, with as little around it as a conversation needs: no template, no sampling.

SLOW in the environment makes each step last that many seconds longer. A message that says `defect` breaks its stream
after the first chunk, `fault` fails it there, `die` ends the whole process.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from dragoman.adapters.call import JsonObject, new_id
from dragoman.adapters.faults import Fault
from dragoman.local_engine.engine import EventBatch, Engine
from dragoman.local_engine.process.interface import Settings
from dragoman.local_engine.process.main import main
from dragoman.local_engine.generation import Finished, GenerationRequest, SamplingParams
from dragoman.local_engine.event_streams import EventStreams


class PlainHub:
    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name
        self._streams = EventStreams(engine, asyncio.get_running_loop())
        deliver, pause = engine.deliver, float(os.environ.get("SLOW", "0"))

        def slowly(batch: EventBatch) -> None:
            time.sleep(pause)
            deliver(batch)

        engine.deliver = slowly

    async def chat(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        said = str(request["messages"][-1]["content"])
        if said == "refuse":
            raise Fault("invalid_request", "this was refused", ("messages", 0, "content"), code="refused")
        head = {"id": new_id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": self.name}
        most = request.get("max_completion_tokens") or request.get("max_tokens")
        asked = GenerationRequest(tuple(said.encode()), SamplingParams(temperature=0), most, ignore_eos=True)
        async with aclosing(self._streams.run(asked)) as events:
            async for event in events:
                last = isinstance(event, Finished)
                delta = {} if last else {"role": "assistant", "content": event.text}
                choice = {"index": 0, "delta": delta, "finish_reason": "length" if last else None}
                yield {**head, "choices": [choice]}
                self._break(said)

    def _break(self, said: str) -> None:
        if said == "defect":
            raise RuntimeError("a defect")
        if said == "fault":
            raise Fault("overloaded", "closing", code="closing")
        if said == "die":
            os._exit(7)

    async def completions(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        yield {
            "object": "text_completion",
            "choices": [{"index": 0, "text": request["prompt"], "finish_reason": "stop"}],
        }

    async def embeddings(self, request: JsonObject) -> JsonObject:
        raise Fault("invalid_request", "this model embeds nothing", ("model",))

    def whole(self, chunks: Sequence[JsonObject]) -> JsonObject:
        text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": None,
            "finish_reason": "length",
        }
        usage = {"prompt_tokens": 1, "completion_tokens": len(chunks), "total_tokens": 1 + len(chunks)}
        return {**chunks[0], "object": "chat.completion", "choices": [choice], "usage": usage}

    def statistics(self) -> dict[str, Any]:
        return self._engine.statistics()

    def close(self) -> None:
        self._engine.close()


async def load(settings: Settings) -> PlainHub:
    engine = await asyncio.to_thread(Engine.load, settings.model_dir, settings.options)
    return PlainHub(engine, settings.name or settings.model_dir.name)


if __name__ == "__main__":
    sys.exit(main(load=load))
