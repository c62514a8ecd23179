"""Measures how long it takes to parse the bodies of clients: `uv run python bench/json_bodies.py [--rounds 5]`.

Compares `read_object`, which parses with orjson and reads only texts that are not compact a second time, with simpler
methods. Prints microseconds of processor time, the best of the rounds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import orjson

from dragoman.adapters import jsontext

__all__: list[str] = []

SIZES = {"1 KB": 1_000, "4 KB": 4_000, "200 KB": 200_000, "1 MB": 1_000_000}
SECONDS = 0.2  # of one measurement, roughly
TEXT = 'He said: "what is the weather in Oslo?"\n'
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "Look up the weather", "parameters": CITY}}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often to measure, 1 to 100 (default 5)")
    rounds: int = parser.parse_args().rounds
    print(f"{'':18}" + "".join(f"{name:>24}" for name in WAYS))
    for name, size in SIZES.items():
        for kind, text in spell(chat_request(size)).items():
            cells = (measure(parse, text, rounds) for parse in WAYS.values())
            print(f"{name + ', ' + kind:18}" + "".join(f"{cell:>24.1f}" for cell in cells))


def chat_request(size: int) -> dict[str, Any]:
    """A conversation whose JSON has about `size` bytes."""
    messages: list[dict[str, str]] = []
    content = TEXT * (4 if size < 10_000 else 12)
    while len(messages) * (len(content) + 45) < size - 300:
        messages.append({"role": ("user", "assistant")[len(messages) % 2], "content": content})
    return {"model": "fast", "temperature": 0.7, "max_tokens": 300, "tools": [TOOL], "messages": messages}


def spell(body: dict[str, Any]) -> dict[str, bytes]:
    """The JSON text as most clients write it, and with spaces."""
    return {"compact": orjson.dumps(body), "spaced": json.dumps(body).encode()}


def parse_twice(text: bytes) -> Any:
    value = orjson.loads(text)
    jsontext._check_exactly(text.decode(), 0)
    return value


def parse_with_hook(text: bytes) -> Any:
    return json.loads(text, object_pairs_hook=build_object)


def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def measure(parse: Callable[[bytes], Any], text: bytes, rounds: int) -> float:
    """Microseconds for one call."""
    times = max(3, min(5000, int(SECONDS / (5e-6 + len(text) * 5e-9))))
    return min(time_calls(parse, text, times) for _ in range(rounds)) * 1e6


def time_calls(parse: Callable[[bytes], Any], text: bytes, times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        parse(text)
    return (time.process_time() - started) / times


WAYS: dict[str, Callable[[bytes], Any]] = {
    "orjson alone": orjson.loads,
    "read_object": jsontext.read_object,
    "orjson, then json": parse_twice,
    "json with a hook alone": parse_with_hook,
}

if __name__ == "__main__":
    main()
