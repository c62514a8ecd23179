"""The text of a request that a target gets as its client wrote it, but for the name of the model.

To find duplicate keys, `jsontext` writes what it has parsed. That text is what would be sent, with another model:

    {"model":"fast","messages":[...]}   becomes   {"model":"provider/large-2","messages":[...]}

Where `model` is not the first key, one inside of values, or one that ends with `"model`, could be taken for it: then
there is more than one.
"""

from __future__ import annotations

from operator import is_

import orjson

from .call import JsonObject

__all__ = ["replace_model"]

_KEY = b'"model":'


def replace_model(text: bytes, body: JsonObject, sent: JsonObject) -> bytes | None:
    """`orjson.dumps(sent)`, made from `text`, which is `orjson.dumps(body)`. None if they differ in more than the
    model, or the model is not easily found."""
    if "model" not in body or [*body] != [*sent]:
        return None
    is_same = [*map(is_, body.values(), sent.values())]
    if is_same.count(False) != (body["model"] is not sent["model"]):
        return None
    at = 1 if next(iter(body)) == "model" else _find_only_key(text)
    if at < 0:
        return None
    end = at + len(_KEY) + len(orjson.dumps(body["model"]))
    return b"".join((memoryview(text)[:at], _KEY, orjson.dumps(sent["model"]), memoryview(text)[end:]))


def _find_only_key(text: bytes) -> int:
    """Where the text has `"model":`; -1 if it has it more than once."""
    at = text.find(_KEY)
    return at if text.find(_KEY, at + 1) < 0 else -1
