"""What providers answered, and what was changed in it, as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.adapters.call import JsonObject
from dragoman.proxy.telemetry.recording import Recording

from .formatting import Line, format_changes

__all__ = ["format_raw_answers", "format_reply_changes"]


def format_reply_changes(recording: Recording) -> Iterator[Line]:
    """The changes to the reply of the last try."""
    if not recording.tries:
        return
    last = recording.tries[-1]
    yield "bold", "changes to the answer"
    yield from format_changes(last.changes[last.request_changes :])


def format_raw_answers(calls: Iterable[JsonObject]) -> Iterator[Line]:
    """The reply to each call, as the page has it: head and body, secrets masked."""
    for call in calls:
        reply = call["reply"]
        yield "", ""
        yield "bold", f"{call['target']} answered"
        yield "", reply["line"] or "nothing"
        yield from (("", f"{name}: {value}") for name, value in reply["headers"])
        yield "", ""
        body = "".join(event["text"] for event in reply["events"]) or reply["body"] or ""
        yield from (("", line) for line in body.rstrip("\r\n").splitlines())
        if reply["why_not"]:
            yield "dim", reply["why_not"]
    yield "", ""
