"""The load generator finds wrong answers, the provider sends right ones, and both versions of each agree."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import MSG_WAITALL, create_server, socket
from typing import Any

import pytest
from _cases import CASES, EVENTS, REPLY, build_request
from _load import find_percentile
from _native import FLAGS, SOURCES
from _processes import free_port, run_process, wait_until_listening
from _upstream import PIECES, STREAM_HEAD, WHOLE

BENCH = SOURCES.parent
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
Programs = dict[str, list[str]]
ENDING = b"data: [DONE]\n\n"


@pytest.fixture(scope="module", params=["C", "Python"])
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The commands of the load generator and of the provider."""
    if request.param == "Python":
        return {name: [sys.executable, str(BENCH / f"_{name}.py")] for name in ("load", "upstream")}
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("native")
    names = {"load": "load", "upstream": "provider"}
    return {name: [str(compile_program(source, folder))] for name, source in names.items()}


def compile_program(name: str, folder: Path) -> Path:
    command = ["cc", *FLAGS, "-Werror", str(SOURCES / f"{name}.c"), "-o", str(folder / name)]
    subprocess.run(command, check=True, timeout=60)
    return folder / name


def send(programs: Programs, port: int, case: str, *options: str) -> dict[str, Any]:
    """Let the load generator send requests until three answers have come; what it found."""
    needle = "[DONE]" if CASES[case].is_stream else REPLY
    given = ["--events", str(EVENTS)] if CASES[case].is_stream else []
    command = [*programs["load"], str(port), "--answers", "3", "--needle", needle, *given, *options]
    run = subprocess.run(command, input=build_request(port, CASES[case]), capture_output=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("case", ["whole", "small", "large", "burst"])
def test_right_answers_are_counted(programs: Programs, case: str) -> None:
    port = free_port()
    with run_process([*programs["upstream"], str(port)]) as provider:
        assert wait_until_listening(port, provider)
        found = send(programs, port, case, "--pid", str(provider.pid))
    assert (found["errors"], found["error"]) == (0, "")
    assert found["answers"] >= 3 and found["cpu_ns"][0] > 0
    assert found["tokens"] >= 3 * EVENTS * CASES[case].is_stream
    assert (found["delay_us_p50"] is not None) == CASES[case].is_stream


@contextmanager
def answer_with(answer: bytes, case: str) -> Iterator[int]:
    """A server that answers each request of a case with these bytes."""
    with create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        size = len(build_request(port, CASES[case]))
        threading.Thread(target=_serve, args=(listener, answer, size), daemon=True).start()
        yield port


def _serve(listener: socket, answer: bytes, size: int) -> None:
    with suppress(OSError):  # the listener is closed at the end of the test
        while True:
            connection, _ = listener.accept()
            with connection, suppress(ConnectionError):
                while connection.recv(size, MSG_WAITALL):
                    connection.sendall(answer)


def write_stream(*pieces: bytes) -> bytes:
    return STREAM_HEAD + b"".join(pieces)


WRONG = {
    "another status": ("whole", WHOLE.replace(b"200 OK", b"500 No")),
    "another text": ("whole", WHOLE.replace(REPLY.encode(), b"x" * len(REPLY))),
    "a missing event": ("burst", write_stream(*PIECES[:7], *PIECES[8:])),
    "events in another order": ("burst", write_stream(*PIECES[:7], PIECES[8], PIECES[7], *PIECES[9:])),
    "no end": ("burst", write_stream(*PIECES).replace(b"[DONE]", b'{"a":1}'[:6])),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_answers_are_errors(programs: Programs, what: str) -> None:
    case, answer = WRONG[what]
    with answer_with(answer, case) as port:
        found = send(programs, port, case)
    assert found["errors"] and found["error"]


BROKEN = ['{"id":"chatcmpl', '{"id" "x"}', '{"id":"x"}}', '["a",]', "{'id':1}", '{"id":nul}', ""]


@needs_compiler
@pytest.mark.parametrize("text", [*BROKEN, '{"a":[1,-2.5e3,true,null,{"b":"\\"}"}],"c":{}}'])
def test_json_is_judged(text: str, tmp_path: Path) -> None:
    body = text.encode()
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    load = {"load": [str(compile_program("load", tmp_path))]}
    with answer_with(answer, "whole") as port:
        found = send(load, port, "whole", "--needle", "")
    assert bool(found["errors"]) == (text in BROKEN)


@pytest.mark.parametrize(("samples", "percent", "expected"), [([3, 1, 2], 50, 2), ([*range(1, 201)], 99, 198)])
def test_percentiles_have_the_nearest_rank(samples: list[float], percent: int, expected: float) -> None:
    assert find_percentile(samples, percent) == expected


def test_without_samples_there_is_no_percentile() -> None:
    assert find_percentile([], 50) is None


@pytest.mark.parametrize("name", CASES)
def test_requests_have_the_size_of_their_case(name: str) -> None:
    head, _, body = build_request(1, CASES[name]).partition(b"\r\n\r\n")
    assert len(body) == CASES[name].size and f"content-length: {len(body)}".encode() in head
    assert json.loads(body)["model"] == f"bench-{CASES[name].workload}"
