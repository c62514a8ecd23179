"""Profiles a process under load with py-spy: flame graphs, and the functions that take most of the time."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from _cases import build_request
from _rows import Row, list_load_command
from _targets import MissingTarget, install_environment

__all__ = ["profile_load", "summarize_stacks"]

PY_SPY = "py-spy==0.4.2"
RATE = 500  # samples a second
SHOWN = 10  # functions in a summary
_LINE = re.compile(r":\d+\)$")


def profile_load(row: Row, name: str, seconds: float, file: Path) -> Path:
    """Profile the process of a row in a case. Write FILE.svg, and FILE.txt with a stack and its samples in each line,
    which is returned. Only threads that hold the interpreter's lock are sampled: py-spy takes waiting ones for busy.

    Raises CalledProcessError if py-spy may not read the process, and MissingTarget if it cannot be installed."""
    program = install_environment(PY_SPY) / "bin/py-spy"
    case, process = row.fit_case(name), row.process
    if process is None:
        raise MissingTarget(row.note)
    load = list_load_command(row, case, 2 * seconds + 10)
    with tempfile.TemporaryFile() as request:
        request.write(build_request(row.port, case))
        request.seek(0)
        running = subprocess.Popen(load, stdin=request, stdout=subprocess.DEVNULL)
    try:
        options = ["--pid", str(process.pid), "--gil", "--rate", str(RATE), "--duration", str(max(round(seconds), 1))]
        for kind, suffix in (("raw", ".txt"), ("flamegraph", ".svg")):
            command = [program, "record", *options, "--format", kind, "--output", file.with_suffix(suffix)]
            subprocess.run(command, check=True, capture_output=True, timeout=seconds + 60)
    finally:
        running.terminate()
        running.wait()
    return file.with_suffix(".txt")


def summarize_stacks(text: str) -> Iterator[list[float | str | None]]:
    """The functions with most samples of their own: their names, and their shares with and without callees, in percent.

    A line has the frames of a stack, from the outermost one, separated by `;`, and the number of its samples."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = [_LINE.sub(")", frame) for frame in stack.split(";")]
        own[frames[-1]] += int(count)
        whole.update(dict.fromkeys(frames, int(count)))
    samples = sum(own.values())
    for function, count in own.most_common(SHOWN):
        yield [function, 100 * count / samples, 100 * whole[function] / samples]
