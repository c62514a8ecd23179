"""What a provider gives, made by hand: replies, chunks and contexts."""

from __future__ import annotations

from typing import Any

import orjson

from dragoman.adapters.call import Call, Context, JsonObject, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output, expand

__all__ = ["USAGE", "chunk", "finish", "make_context", "make_reply", "merge_pieces", "run", "usage_chunk"]

USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def make_context(**request: Any) -> Context:
    if not request.keys() & {"messages", "prompt", "input"}:
        request["messages"] = [{"role": "user", "content": "hello"}]
    return Context("actual", Call("POST", "/", {}), Receipt(), Target("up"), {"model": "m", **request})


def make_reply(*choices: JsonObject, **top: Any) -> JsonObject:
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [*choices], **top}


def chunk(delta: JsonObject, index: int = 0, finish: str | None = None, **more: Any) -> Chunk:
    return Chunk({**_CHUNK, "choices": [{"index": index, "delta": delta, "finish_reason": finish, **more}]})


def finish(reason: str = "stop", index: int = 0) -> Chunk:
    return chunk({}, index, reason)


def run(*texts: str, index: int = 0, key: str = "content") -> DeltaRun:
    body = chunk({key: ""}, index).body
    return DeltaRun(body, ("choices", 0, "delta", key), [orjson.dumps(text)[1:-1] for text in texts])


def usage_chunk(usage: JsonObject = USAGE) -> Chunk:
    return Chunk({**_CHUNK, "choices": [], "usage": usage})


def merge_pieces(outputs: list[Output]) -> dict[int, JsonObject]:
    """What the choices of a stream say: their texts joined by key, and the finish reason."""
    said: dict[int, JsonObject] = {}
    for one in expand(outputs):
        for choice in one.body["choices"] if isinstance(one, Chunk) else ():
            whole = said.setdefault(choice["index"], {"finish": None})
            assert whole["finish"] is None, "something follows the finish reason"
            for key, value in choice["delta"].items():
                whole[key] = whole[key] + value if key in whole and key != "role" else value
            whole["finish"] = choice["finish_reason"]
            if choice.get("logprobs"):
                whole.setdefault("tokens", []).extend(one["token"] for one in choice["logprobs"]["content"])
    assert all(not isinstance(one, End) for one in outputs[:-1]), "something follows the end"
    return said
