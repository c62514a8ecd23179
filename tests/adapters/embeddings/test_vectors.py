from __future__ import annotations

import math
import struct
from array import array
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.embeddings.vectors import check_base64, check_numbers, decode_vector, encode_vector

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(FINITE, min_size=1))
def test_from_floats_to_base64_and_back_is_exact(vector: list[float]) -> None:
    packed = encode_vector(vector)
    assert b64decode(packed) == struct.pack(f"<{len(vector)}f", *vector)
    back = decode_vector(packed)
    assert [struct.pack("<f", one) for one in back] == [struct.pack("<f", one) for one in vector], "signs of zero too"
    assert check_base64(packed) == check_numbers(back) == len(vector)


@given(st.lists(st.binary(min_size=4, max_size=4), min_size=1))
def test_from_base64_to_floats_and_back_is_exact(words: list[bytes]) -> None:
    packed = b64encode(b"".join(words)).decode()
    finite = all(math.isfinite(*struct.unpack("<f", word)) for word in words)
    if finite:
        assert encode_vector(decode_vector(packed)) == packed
    else:
        for read in (decode_vector, check_base64):
            with pytest.raises(ValueError, match="not finite"):
                read(packed)


@given(st.floats(min_value=-1, max_value=1))
def test_other_numbers_become_the_nearest(number: float) -> None:
    assert decode_vector(encode_vector([number])) == array("f", [number]).tolist()


def test_integers_are_numbers() -> None:
    assert decode_vector(encode_vector([0, 1, -3])) == [0.0, 1.0, -3.0]


@pytest.mark.parametrize("wrong", [None, "1", True, [1.0], {}])
def test_what_is_no_number(wrong: object) -> None:
    for read in (encode_vector, check_numbers):
        with pytest.raises(ValueError, match="no number"):
            read([0.5, wrong])


@pytest.mark.parametrize("number", [1e39, -1e300, 10**400], ids=["float", "vast float", "vast integer"])
def test_what_no_32_bit_float_holds(number: float) -> None:
    with pytest.raises(ValueError, match="too large"):
        encode_vector([0.5, number])


@pytest.mark.parametrize("text", ["!", "AAAA", "AAAAAAA=", "AAAAAA", "AAAA AAA", "AAAAAAAA\n", "ÄAAAAA=="])
def test_what_is_no_base64_of_floats(text: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        decode_vector(text)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite(number: float) -> None:
    packed = b64encode(struct.pack("<3f", 1, number, 2)).decode()
    for read in (decode_vector, check_base64):
        with pytest.raises(ValueError, match="not finite"):
            read(packed)


def test_infinities_that_cancel_out() -> None:
    with pytest.raises(ValueError, match="not finite"):
        check_base64(b64encode(struct.pack("<2f", math.inf, -math.inf)).decode())


def test_the_largest_floats_together() -> None:
    largest = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
    assert check_base64(encode_vector([largest] * 4096)) == 4096
