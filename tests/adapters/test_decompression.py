from __future__ import annotations

import asyncio
import gzip
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.proxy.http.decompression import SLICE, BadEncoding, TooMuch, codec


def _deflate(data: bytes) -> bytes:
    machine = zlib.compressobj(wbits=-15)
    return machine.compress(data) + machine.flush()


FORMS = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "Deflate": _deflate}


@settings(max_examples=50)
@given(st.binary(max_size=300), st.sampled_from(sorted(FORMS)), st.integers(1, 50))
def test_any_pieces_give_the_body(body: bytes, coding: str, size: int) -> None:
    data = FORMS[coding](body)
    inflater = codec(coding, 1000)
    assert inflater is not None
    out = b"".join(inflater.feed(data[at : at + size]) for at in range(0, len(data), size))
    inflater.close()
    assert out == body


@pytest.mark.parametrize("size", [0, 1, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE])
@pytest.mark.parametrize("coding", FORMS)
def test_what_swells_comes_in_slices(coding: str, size: int) -> None:
    inflater = codec(coding, size)
    assert inflater is not None
    parts = [inflater.feed(FORMS[coding](b"a" * size))]
    while inflater.pending:
        parts.append(inflater.feed(b""))
    inflater.close()
    assert sum(map(len, parts)) == size
    assert max(map(len, parts)) <= SLICE


@pytest.mark.parametrize("size", [1, SLICE, 5 * SLICE])
@pytest.mark.parametrize("coding", FORMS)
async def test_a_whole_body(coding: str, size: int) -> None:
    for body in (b"a" * size, random.Random(size).randbytes(size)):
        inflater, cut = codec(coding, size), codec(coding, size)
        assert inflater is not None
        assert cut is not None
        assert await inflater.whole(FORMS[coding](body)) == body
        with pytest.raises(BadEncoding):
            await cut.whole(FORMS[coding](body) + b"more")


async def test_a_large_body_leaves_others_their_turn() -> None:
    inflater, turns = codec("gzip", 32 * SLICE), 0
    assert inflater is not None
    inflating = asyncio.create_task(inflater.whole(gzip.compress(random.Random(1).randbytes(32 * SLICE), 1)))
    while not inflating.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 32


@pytest.mark.parametrize("coding", FORMS)
def test_no_more_than_the_limit(coding: str) -> None:
    data = FORMS[coding](b"a" * 1000)
    exact = codec(coding, 1000)
    assert exact is not None
    assert len(exact.feed(data)) == 1000
    exact.close()
    short = codec(coding, 999)
    assert short is not None
    with pytest.raises(TooMuch):
        short.feed(data)


@pytest.mark.parametrize("coding", FORMS)
def test_bytes_that_are_not_what_they_say(coding: str) -> None:
    data = FORMS[coding](b"hello world" * 10)
    for wrong in (b"xxxxxxxxxxxxxxxx", data + b"more"):
        inflater = codec(coding, 1000)
        assert inflater is not None
        with pytest.raises(BadEncoding):
            inflater.feed(wrong)
    inflater = codec(coding, 1000)
    assert inflater is not None
    inflater.feed(data[:-6])
    with pytest.raises(BadEncoding, match="ends early"):
        inflater.close()


def test_what_is_not_encoded() -> None:
    assert codec(None, 1) is codec("", 1) is codec(" Identity ", 1) is None


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress"])
def test_what_is_not_supported(coding: str) -> None:
    with pytest.raises(BadEncoding, match="is not supported"):
        codec(coding, 1)
