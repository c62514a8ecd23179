"""Judges a recorded stream offline: is it complete, and what would a client of another dialect get?

    python examples/judge_stream.py recording.sse

The recording holds the bytes of the provider's reply. Nothing is sent anywhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

import dragoman


def judge(recording: bytes, provider: str = "openai", client: str = "openai") -> dragoman.Attempt:
    """Feed a recorded chat stream to an attempt. Its `outcome` is the verdict, its `receipt` what had to be changed."""
    dialect = dragoman.dialects[client]
    route = dragoman.Route(dialect, "chat", dialect.served["chat"], "actual")
    plan = dragoman.plan_target("recording", dragoman.dialects[provider], ["chat"], dragoman.Target("model"))
    request = {"model": "model", "messages": [], "stream": True, "stream_options": {"include_usage": True}}
    attempt = dragoman.Pipeline(route, dragoman.Call("POST", "/", {})).expect_reply(plan, request)
    attempt.start_reply(0, 200, {"content-type": "text/event-stream"})
    attempt.feed(0, recording)
    attempt.close(0)
    return attempt


def main(path: str) -> int:
    attempt = judge(Path(path).read_bytes())
    for change in attempt.receipt.changes:
        print(f"{change.action}: {change.reason}")
    fault = attempt.outcome.fault
    print(attempt.outcome.state if fault is None else f"failed: {fault.code or fault.kind}: {fault.message}")
    return 0 if fault is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
