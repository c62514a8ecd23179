"""The process that judges large requests: `python -m dragoman.proxy.exchange.judge_process`, started by `body_judge`.

Its standard input is a socket. What comes and goes are frames: eight bytes with two lengths, then a JSON text, and
bytes. A question is a request's head and its body. The answer is the fault that refuses the request; or a list of the
body's long values if it is right JSON, and nothing else is wrong as far as the request alone decides it; or null if
that is not known. The process ends when the other side closes the socket, so also if the proxy is killed.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from functools import cache
from typing import Any, BinaryIO

import orjson
from multidict import CIMultiDict

from dragoman.adapters.call import Call
from dragoman.adapters.error_replies import is_showable
from dragoman.adapters.faults import Fault
from dragoman.adapters.jsontext import find_parts
from dragoman.adapters.pipeline import Pipeline
from dragoman.adapters.registry import dialects
from dragoman.adapters.routes import RouteTable

__all__ = ["HEAD", "judge", "read_fault"]

HEAD = struct.Struct("=II")
"""The lengths of a frame's JSON text and of its bytes."""

_NICENESS = 10  # the proxy goes first
_NOTHING = b"null"
_NOT_SHOWN = [0] * 4096  # in place of a value at fault that is too long for any reply


class _TaskNeededError(Exception):
    """What the request asks for depends on the configuration."""


def judge(question: dict[str, Any], body: bytes) -> bytes:
    """What is wrong with a request, as JSON: the fault that refuses it; the long values of its body if there is none,
    or none that the request alone decides; null if that is not known."""
    route = _create_routes(question["dialect"], question["profile"]).match(question["path"])
    if route is None:
        return _NOTHING
    headers = CIMultiDict(question["headers"])
    call = Call(question["method"], route.strip_prefix(question["path"]), {}, question["query"], headers)
    try:
        with suppress(_TaskNeededError):  # it is asked for when the body has been read
            Pipeline(route, call).receive(body, _refuse_task, question["value_limit"])
        return orjson.dumps([*map(tuple, find_parts(body))])
    except Fault as fault:
        return _write_fault(fault)
    except Exception:  # noqa: BLE001 - a defect: it happens again, and is logged, where the request is served
        return _NOTHING


def read_fault(fields: dict[str, Any]) -> Fault:
    """The fault that was written as JSON."""
    others = tuple(map(read_fault, fields["others"]))
    return Fault(**{**fields, "path": tuple(fields["path"]), "place": tuple(fields["place"]), "others": others})


def _write_fault(fault: Fault) -> bytes:
    for one in fault.reasons:
        if not is_showable(one.value):
            one.value = _NOT_SHOWN
    return orjson.dumps(fault)


@cache
def _create_routes(dialect: str, profile: str) -> RouteTable:
    return RouteTable(dialects, {dialect: profile})


def _refuse_task(model: str) -> None:
    raise _TaskNeededError(model)


def _serve(source: BinaryIO, target: socket.socket) -> None:
    """Answer until the other side closes the socket. The first frame, which answers nothing, says that it begins."""
    answer = _NOTHING
    while True:
        target.sendall(HEAD.pack(len(answer), 0) + answer)
        if len(head := source.read(HEAD.size)) < HEAD.size:
            return
        size, body_size = HEAD.unpack(head)
        question, body = source.read(size), source.read(body_size)
        if len(body) < body_size:
            return
        gc.disable()  # see large_bodies.py
        answer = judge(json.loads(question), body)
        del question, body
        gc.enable()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # it serves as long as the proxy does
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICENESS)
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # it never interrupts, whatever it inherits
    gc.freeze()
    with socket.socket(fileno=0) as connection, connection.makefile("rb") as source:
        _serve(source, connection)


if __name__ == "__main__":
    main()
