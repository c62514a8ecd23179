from __future__ import annotations

import gzip
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.decompression import SLICE, BadEncoding, DecompressedTooLarge, create_decompressor
from tests.tables import for_each


def _deflate(data: bytes) -> bytes:
    machine = zlib.compressobj(wbits=-15)
    return machine.compress(data) + machine.flush()


FORMS = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "Deflate": _deflate}


@given(st.binary(max_size=300), st.sampled_from(sorted(FORMS)), st.integers(1, 50))
def test_any_pieces_give_the_body(body: bytes, coding: str, size: int) -> None:
    data = FORMS[coding](body)
    decompressor = create_decompressor(coding, 1000)
    assert decompressor is not None
    out = b"".join(decompressor.feed(data[at : at + size]) for at in range(0, len(data), size))
    decompressor.close()
    assert out == body


@for_each("size", [0, 1, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE])
@for_each("coding", FORMS)
def test_what_swells_comes_in_slices(coding: str, size: int) -> None:
    decompressor = create_decompressor(coding, size)
    assert decompressor is not None
    parts = [decompressor.feed(FORMS[coding](b"a" * size))]
    while decompressor.pending:
        parts.append(decompressor.feed(b""))
    decompressor.close()
    assert sum(map(len, parts)) == size
    assert max(map(len, parts)) <= SLICE


@pytest.mark.parametrize("size", [1, SLICE, 5 * SLICE])
@pytest.mark.parametrize("coding", FORMS)
def test_a_whole_body_comes_in_slices_too(coding: str, size: int) -> None:
    for body in (b"a" * size, random.Random(size).randbytes(size)):
        decompressor, cut = create_decompressor(coding, size), create_decompressor(coding, size)
        assert decompressor is not None
        assert cut is not None
        parts = list(decompressor.decompress([FORMS[coding](body)]))
        assert b"".join(parts) == body
        assert max(map(len, parts)) <= SLICE
        with pytest.raises(BadEncoding):
            list(cut.decompress([FORMS[coding](body), b"more"]))


@pytest.mark.parametrize("coding", FORMS)
def test_no_more_than_the_limit(coding: str) -> None:
    data = FORMS[coding](b"a" * 1000)
    exact = create_decompressor(coding, 1000)
    assert exact is not None
    assert len(exact.feed(data)) == 1000
    exact.close()
    short = create_decompressor(coding, 999)
    assert short is not None
    with pytest.raises(DecompressedTooLarge):
        short.feed(data)


@pytest.mark.parametrize("coding", FORMS)
def test_bytes_that_are_not_what_they_say(coding: str) -> None:
    data = FORMS[coding](b"hello world" * 10)
    for wrong in (b"xxxxxxxxxxxxxxxx", data + b"more"):
        decompressor = create_decompressor(coding, 1000)
        assert decompressor is not None
        with pytest.raises(BadEncoding):
            decompressor.feed(wrong)
    decompressor = create_decompressor(coding, 1000)
    assert decompressor is not None
    decompressor.feed(data[:-6])
    with pytest.raises(BadEncoding, match="ends early"):
        decompressor.close()


def test_what_is_not_encoded() -> None:
    assert create_decompressor(None, 1) is create_decompressor("", 1) is create_decompressor(" Identity ", 1) is None


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress"])
def test_what_is_not_supported(coding: str) -> None:
    with pytest.raises(BadEncoding, match="is not supported"):
        create_decompressor(coding, 1)
