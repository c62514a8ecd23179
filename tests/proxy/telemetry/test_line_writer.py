"""The thread that writes lines: their order, the limits of its queue, its failures."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from dragoman.proxy.telemetry.line_writer import LineWriter, QueuedText


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(write)


def describe(count: int) -> bytes:
    return b"%d dropped\n" % count


def test_lines_keep_their_order(tmp_path: Path) -> None:
    lines = [b"line %d\n" % number for number in range(20_000)]
    with (tmp_path / "log").open("wb") as file:
        writer = LineWriter(file.fileno(), describe)
        for line in lines:
            writer.write(line)
        writer.close()
    assert (tmp_path / "log").read_bytes() == b"".join(lines)


@pytest.mark.parametrize("blocking", [True, False])
def test_dropped_lines_are_counted_where_they_are_missing(pipe: tuple[int, int], blocking: bool) -> None:
    read, write = pipe
    os.set_blocking(write, blocking)
    writer = LineWriter(write, describe, capacity=300_000)
    lines = [b"%099d\n" % number for number in range(4000)]
    for line in lines:
        writer.write(line)
    written = b""
    notices: list[bytes] = []
    before: list[bytes] = []
    while sum(map(int, notices)) + len(before) < len(lines):
        written += os.read(read, 65536)
        notices = re.findall(rb"(\d+) dropped\n", written)
        before = re.findall(rb"\d{99}\n", written)
    writer.close()
    assert before == lines[: len(before)]
    assert written == b"".join(before) + b"".join(describe(int(one)) for one in notices)
    assert len(before) >= 3000 and len(notices) in (1, 2), "two if lines came while the first were taken"


def test_what_fails_is_written_as_soon_as_it_can_be(tmp_path: Path) -> None:
    """The descriptor leads to a full disk, and then to a file."""
    with open("/dev/full", "wb", buffering=0) as full, (tmp_path / "log").open("wb") as file:
        writer = LineWriter(full.fileno(), describe)
        writer.write(b"a\n")
        writer.write(b"b\n")
        os.dup2(file.fileno(), full.fileno())
        writer.close()
    assert (tmp_path / "log").read_bytes() == b"a\nb\n"


def test_closing_gives_up_if_nothing_can_be_written(pipe: tuple[int, int]) -> None:
    read, write = pipe
    unread = LineWriter(write, describe)
    unread.write(b"x" * 100_000)
    unread.close()
    os.close(read)
    closed = LineWriter(write, describe)
    closed.write(b"x\n")
    closed.close()
    closed.write(b"too late\n")


def test_what_is_printed_comes_as_whole_lines(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        writer = LineWriter(file.fileno(), describe)
        with redirect_stderr(QueuedText(writer)):
            print("a", end="", file=sys.stderr)
            writer.write(b"between\n")
            print("b\nc\udcff\x1b[2J", file=sys.stderr)
        writer.close()
    assert (tmp_path / "log").read_bytes() == b"between\nab\nc\\udcff\\u001b[2J\n"
