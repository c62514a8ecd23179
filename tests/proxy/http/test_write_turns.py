"""What is written at once, and what waits for the next turn of the event loop."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.proxy.http.write_turns import WriteTurns

MANY = 100


class Wire:
    """Keeps what is written to it."""

    def __init__(self, written: list[tuple[str, bytes]], name: str) -> None:
        self._written = written
        self._name = name
        self.is_closed = self.fails = False

    def is_closing(self) -> bool:
        return self.is_closed

    def write(self, data: bytes) -> None:
        if self.fails:
            raise RuntimeError("it is broken")
        self._written.append((self._name, data))


@pytest.fixture
async def turns() -> WriteTurns:
    return WriteTurns(asyncio.get_running_loop())


@pytest.fixture
def written() -> list[tuple[str, bytes]]:
    return []


async def test_with_few_requests_nothing_waits(turns: WriteTurns, written: list[tuple[str, bytes]]) -> None:
    turns.in_progress = 1
    turns.write(Wire(written, "a"), b"1")
    assert written == [("a", b"1")]


async def test_with_many_requests_all_writes_of_a_turn_are_made_in_the_next_one(
    turns: WriteTurns, written: list[tuple[str, bytes]]
) -> None:
    turns.in_progress = MANY
    first, second = Wire(written, "a"), Wire(written, "b")
    turns.write(first, b"1")
    turns.write(second, b"2")
    turns.write(first, b"3")
    assert written == []
    await asyncio.sleep(0)
    assert written == [("a", b"13"), ("b", b"2")]
    turns.write(second, b"4")
    await asyncio.sleep(0)
    assert written[2:] == [("b", b"4")]


async def test_what_is_written_at_once_comes_after_what_waits(
    turns: WriteTurns, written: list[tuple[str, bytes]]
) -> None:
    turns.in_progress = MANY
    wire, other = Wire(written, "a"), Wire(written, "b")
    turns.write(wire, b"1")
    turns.write(other, b"x")
    turns.write_now(wire)
    turns.write_now(None)
    assert written == [("a", b"1")]
    turns.write(wire, b"2")
    turns.in_progress = 1
    turns.write(wire, b"3")
    await asyncio.sleep(0)
    assert written == [("a", b"1"), ("a", b"2"), ("a", b"3"), ("b", b"x")]


async def test_nothing_is_written_to_what_was_closed_meanwhile(
    turns: WriteTurns, written: list[tuple[str, bytes]]
) -> None:
    turns.in_progress = MANY
    wire, other = Wire(written, "a"), Wire(written, "b")
    turns.write(wire, b"1")
    turns.write(other, b"2")
    assert turns.has_waiting(wire)
    wire.is_closed = other.is_closed = True
    turns.write_now(other)
    await asyncio.sleep(0)
    assert written == []
    assert not turns.has_waiting(wire)


async def test_a_write_that_fails_keeps_no_other_one_from_being_made(
    turns: WriteTurns, written: list[tuple[str, bytes]]
) -> None:
    turns.in_progress = MANY
    broken = Wire(written, "a")
    broken.fails = True
    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    for wire in (broken, Wire(written, "b"), Wire(written, "c")):
        turns.write(wire, b"1")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert written == [("b", b"1"), ("c", b"1")]
    assert [str(error["exception"]) for error in errors] == ["it is broken"]
