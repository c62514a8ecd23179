"""What reads the bytes of providers holds its laws for damaged bytes."""

from __future__ import annotations

from random import Random

import pytest

from dragoman.adapters import json_repair, sse
from dragoman.adapters.common.stream_reader import StreamReaderBase
from tools.fuzz.codecs import CODECS, check_frames, check_json, check_stream, draw_case, list_seeds

CASES = 150


@pytest.mark.parametrize("codec", CODECS)
def test_usual_bytes(codec: str) -> None:
    for case in list_seeds(codec, 20):
        CODECS[codec].check(case)


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_bytes(codec: str) -> None:
    random = Random(codec)
    for _ in range(CASES):
        CODECS[codec].check(draw_case(codec, random))


def test_what_depends_on_the_cuts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse.Framer, "_normalize_line_ends", lambda self, data: data.replace(b"\r\n", b"\n"))
    with pytest.raises(AssertionError, match="the items depend on the cuts"):
        check_frames(b"\0\0\0\1data: a\r\n\r\n")


def test_what_changes_without_a_reason_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_repair, "read_any", lambda raw: {"a": len(raw)})
    with pytest.raises(AssertionError, match="a value changes"):
        check_json(b'{"a": 1234}')


def test_a_stream_without_an_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamReaderBase, "close", lambda self, cut=None: [])
    with pytest.raises(AssertionError, match="a stream has no terminal"):
        check_stream("chat", b"\0\0\0\0")
