"""What the answer to a probe means: whether the endpoint accepted the request, and what it said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dragoman.contract.exchange import Request
from dragoman.contract.json_path import ABSENT, find_value
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.outcome import Outcome
from dragoman.contract.texts import shorten

from .findings import Evidence

__all__ = ["Answer", "State", "judge_outcome", "read_message"]

State: TypeAlias = Literal["accepted", "refused", "crashed", "unclear"]

_REFUSALS = (400, 404, 413, 415, 422, 501)
_MESSAGES = (
    *("error.message", "message", "error", "detail[0].msg", "detail.msg", "detail", "error.error", "err_msg"),
    "response.error.message",
)
_MOST_SENT, _MOST_RECEIVED = 120, 120


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one probe. `state` says what the endpoint did with the request; for `unclear`, `why` says why
    nothing follows from it. `outcome` is None if there was no response. `sent` is the part of the body that the
    probe is about. A slow one ran into the timeout, so that asking again would only take as long."""

    state: State
    why: str = ""
    outcome: Outcome | None = None
    request: Request | None = None
    sent: JsonObject | None = None
    is_slow: bool = False

    @property
    def is_accepted(self) -> bool:
        return self.state == "accepted"

    @property
    def is_rejected(self) -> bool:
        """Whether the endpoint has the request refused, or failed because of it."""
        return self.state in ("refused", "crashed")

    @property
    def message(self) -> str:
        """What the error says; empty if there is none."""
        return read_message(self.outcome) if self.outcome is not None else ""

    def describe(self, seen: str = "") -> Evidence:
        """The exchange as evidence. `seen` is what the reply shows, if it is no error."""
        sent = "" if self.request is None else f"{self.request.method} {self.request.path}"
        if self.sent:
            sent = f"{sent} {shorten(json.dumps(self.sent, ensure_ascii=False), _MOST_SENT)}"
        if self.outcome is None:
            return Evidence(sent, self.why)
        text = seen or self.message or self.outcome.text
        return Evidence(sent, f"{self.outcome.response.status} {shorten(text, _MOST_RECEIVED)}".strip())


def judge_outcome(outcome: Outcome, reply: str) -> tuple[State, str]:
    """Judge what the endpoint did with a request. `reply` is a path that every whole reply has."""
    status = outcome.response.status
    if status in _REFUSALS:
        return "refused", ""
    if status >= 500:
        return "crashed", ""
    if not 200 <= status < 300:
        return "unclear", f"the endpoint answered {status} {shorten(read_message(outcome) or outcome.text, 120)}"
    if any(_is_error(body) for body in outcome.objects):
        return "crashed", ""
    if outcome.is_sse:
        return ("accepted", "") if outcome.objects else ("unclear", "the stream has no events")
    if find_value(outcome.body, reply) is ABSENT and "choices" not in _keys(outcome.body):
        return "unclear", f"200, but no reply of the protocol: {shorten(outcome.text, 120)}"
    return "accepted", ""


def _keys(body: JsonValue) -> JsonObject:
    return body if isinstance(body, dict) else {}


def _is_error(body: JsonObject) -> bool:
    """Whether an object reports an error with status 200. Replies of Responses have a key `error` that is null."""
    return bool(body.get("error")) and "choices" not in body and "output" not in body


def read_message(outcome: Outcome) -> str:
    """Read what an error says: its message in any usual place, else the text."""
    if outcome.response.status < 400 and not any(_is_error(body) for body in outcome.objects):
        return ""
    body = outcome.last_object
    found = (find_value(body, path) for path in _MESSAGES)
    return next((text for text in found if isinstance(text, str) and text), outcome.text)
