"""Measures the adapters alone, without sockets and the server: `uv run python bench/adapters.py [--rounds 5]`.

A request is parsed, validated, written for its provider, and the reply read, judged and written for the client. The
events of a stream are fed one by one; their cost includes a share of the stream's request. Prints microseconds of
processor time, the best of the rounds. `python` may be any interpreter that has dragoman, compiled or not.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable

from _cases import CASES, build_request
from _upstream import PIECES, WHOLE

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Target
from dragoman.adapters.jsontext import read_object
from dragoman.adapters.pipeline import Pipeline, begin_call, plan_target
from dragoman.adapters.routes import Route

__all__: list[str] = []

SECONDS = 0.2  # of one measurement, roughly
_EVENT = re.compile(rb"data: [^\n]*\n\n")
CLIENTS = {"chat": "openai", "responses": "openai", "messages": "anthropic"}  # the dialects of clients
WORK = {
    "4 KB chat": ("whole", "openai"),
    "4 KB chat to databricks": ("whole", "databricks"),
    "event of a chat stream": ("paced", "openai"),
    "event of a chat stream to databricks": ("paced", "databricks"),
    "event of a Responses stream over chat": ("responses", "openai"),
    "event of a Messages stream over chat": ("messages", "openai"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often to measure, 1 to 100 (default 5)")
    rounds: int = parser.parse_args().rounds
    for name, (case, dialect) in WORK.items():
        run, units = (create_stream if CASES[case].is_stream else create_exchange)(case, dialect)
        print(f"{name:40}{measure(run, units, rounds):8.2f} µs")


def create_exchange(case: str, dialect: str) -> tuple[Callable[[], None], int]:
    """What handles one request and its whole reply, and how many units that is."""
    raw, reply = read_body(case), WHOLE.partition(b"\r\n\r\n")[2]
    route, plan = find_route(case), plan_target(dialect, dialects[dialect], ["chat"], Target("upstream"))

    def run() -> None:
        call = begin_call(route, Call("POST", "/v1/chat/completions", read_object(raw)), plan, "bench")
        if call is None or call.take_reply({"content-type": "application/json"}, reply) is None:
            raise SystemExit("the exchange needs an attempt")

    return run, 1


def create_stream(case: str, dialect: str) -> tuple[Callable[[], None], int]:
    """What handles one request and its stream, and how many events that has."""
    raw, events = read_body(case), [b"".join(_EVENT.findall(piece)) for piece in PIECES]
    route, plan = find_route(case), plan_target(dialect, dialects[dialect], ["chat"], Target("upstream"))
    headers = {"anthropic-version": "2023-06-01"}

    def run() -> None:
        pipeline = Pipeline(route, Call("POST", "", {}, {}, headers))
        pipeline.receive(raw)
        pipeline.start_conversation()
        pipeline.supply([], [])
        attempt = pipeline.prepare(plan)
        attempt.start_reply(0, 200, {"content-type": "text/event-stream"})
        for event in events:
            attempt.feed(0, event)
        attempt.close(0)
        if attempt.outcome.fault is not None:
            raise attempt.outcome.fault

    return run, len(events)


def read_body(case: str) -> bytes:
    return build_request(0, CASES[case]).partition(b"\r\n\r\n")[2]


def find_route(case: str) -> Route:
    protocol = CASES[case].client
    dialect = dialects[CLIENTS[protocol]]
    return Route(dialect, protocol, dialect.served[protocol], "actual")


def measure(run: Callable[[], None], units: int, rounds: int) -> float:
    """Microseconds of processor time for each unit: the best of the rounds."""
    run()
    found = []
    for _ in range(rounds):
        count, began = 0, time.process_time()
        while (spent := time.process_time() - began) < SECONDS:
            run()
            count += units
        found.append(spent / count)
    return min(found) * 1e6


if __name__ == "__main__":
    main()
