"""The reply of a fake that plays a quirk."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.quirk_files import Quirk, find_quirk

from .answers import ModelRequest
from .errors import Problem, write_error
from .forms import DONE
from .wire import Reply

__all__ = ["play_quirk"]

_USAGE = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
_OBJECTS = {"chat": ("chat.completion", "chat.completion.chunk"), "completions": ("text_completion",) * 2}


def play_quirk(request: ModelRequest) -> Reply:
    """Answer as the server with the quirk that the argument `name` names: in the form that the request asks for, or in
    the only one that the quirk has. A server that does not serve the request's protocol answers 404."""
    quirk = find_quirk(request.text_arg("name"))
    if quirk is None:
        return _refuse(request, 400, f"there is no quirk {request.text_arg('name')!r}")
    if request.protocol != quirk.protocol:
        return _refuse(request, 404, f"the server with the quirk {quirk.name} does not serve {request.protocol}")
    form = ("whole", "streamed")[request.stream]
    answer = getattr(quirk, form if form in quirk.forms else quirk.forms[0])
    kind, body = _write_answer(answer, quirk)
    steps = tuple(body) if kind == "text/event-stream" else (b"".join(body),)
    return Reply(quirk.status, {"Content-Type": kind, **quirk.headers}, steps)


def _refuse(request: ModelRequest, status: int, message: str) -> Reply:
    return write_error(request.dialect, request.profile, Problem(status, message))


def _write_answer(answer: JsonValue, quirk: Quirk) -> tuple[str, Iterator[bytes]]:
    """The content type, and the events or the body."""
    if isinstance(answer, list):
        return "text/event-stream", _write_events(answer, quirk)
    if isinstance(answer, str):
        return "application/json", iter((answer.encode("utf-8", "surrogateescape"),))
    return "application/json", iter((_write_json(_wrap(answer, quirk, 0)),))


def _write_events(events: list[JsonValue], quirk: Quirk) -> Iterator[bytes]:
    for event in events:
        if isinstance(event, str):
            yield event.encode() + b"\n\n"
        else:
            yield b"data: " + _write_json(_wrap(event, quirk, 1)) + b"\n\n"
    if quirk.done:
        yield DONE


def _wrap(body: JsonObject, quirk: Quirk, streamed: int) -> JsonObject:
    """Put a choice into an envelope. Another body is the server's own."""
    is_choice = "delta" in body or "finish_reason" in body or isinstance(body.get("message"), dict)
    if quirk.protocol not in _OBJECTS or not is_choice:
        return body
    given = {"delta": {}, **body} if streamed and "message" not in body else body
    choice: JsonObject = {"index": 0, "finish_reason": None, **given}
    kind = _OBJECTS[quirk.protocol][streamed]
    usage = {} if streamed else {"usage": _USAGE}
    return {"id": "chatcmpl-1", "object": kind, "created": 1750000000, "model": "m", "choices": [choice], **usage}


def _write_json(body: JsonValue) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()
