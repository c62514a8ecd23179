"""The detokenizer: complete characters, and no text is lost."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scheduler_rig import Folders
from tokenizers import Tokenizer, decoders, models

from dragoman.local_engine.text.detokenizer import Detokenizer, TokenBytes, load_tokenizer, make_decode

TOKENS = st.lists(
    st.one_of(st.integers(0, 255), st.sampled_from([226, 130, 172, 240, 159, 152, 128, 257])), max_size=60
)


@pytest.fixture(scope="module")
def tokenizer(folders: Folders) -> Tokenizer:
    return load_tokenizer(folders() / "tokenizer.json")


@pytest.fixture(scope="module")
def sentencepiece() -> Tokenizer:
    """A tokenizer like SentencePiece: words with a mark for the space before them, bytes as <0x..>."""
    words = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁a", "▁bc", "d", "▁", "é"]
    vocab = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


@given(TOKENS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_parts_are_the_decoded_text(tokenizer: Tokenizer, ids: list[int]) -> None:
    decode = make_decode(tokenizer)
    detokenizer = Detokenizer(decode)
    parts = [detokenizer.add(token) for token in ids]
    assert "".join(parts) + detokenizer.finish() == decode(ids)


@given(st.text(max_size=30))
def test_no_part_ends_inside_a_character(tokenizer: Tokenizer, text: str) -> None:
    detokenizer = Detokenizer(make_decode(tokenizer))
    parts = [detokenizer.add(byte) for byte in text.encode("utf-8", "replace")]
    assert "".join(parts) + detokenizer.finish() == text
    assert "�" in text or not any("�" in part for part in parts)


@given(st.lists(st.integers(257, 261), max_size=20))
def test_sentencepiece_words_keep_their_spaces(sentencepiece: Tokenizer, ids: list[int]) -> None:
    decode = make_decode(sentencepiece)
    detokenizer = Detokenizer(decode)
    assert "".join([*(detokenizer.add(token) for token in ids), detokenizer.finish()]) == decode(ids)


def test_fallback_bytes_are_joined_to_characters(sentencepiece: Tokenizer) -> None:
    detokenizer = Detokenizer(make_decode(sentencepiece))
    euro = [byte + 1 for byte in "€".encode()]
    assert [detokenizer.add(token) for token in [258, *euro, 259]] == ["bc", "", "", "€", "d"]


def test_bytes_that_never_become_a_character_are_returned_eventually(tokenizer: Tokenizer) -> None:
    detokenizer = Detokenizer(make_decode(tokenizer))
    assert "".join(detokenizer.add(255) for _ in range(200)).count("�") > 100


def test_token_bytes_of_byte_level_and_fallback_tokens(tokenizer: Tokenizer, sentencepiece: Tokenizer) -> None:
    level, other = TokenBytes(tokenizer), TokenBytes(sentencepiece)
    assert [level(byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    assert level(256) == b"<|end|>" and level(9999) == b""
    assert [other(token) for token in (11, 258, 261)] == [b"\n", b" bc", "é".encode()]
