"""Text that comes out: whole characters, nothing of a stop string, nothing lost."""

from __future__ import annotations

import pytest
from engine_rig import Folders
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from dragoman.local_engine.text.detokenizer import Detokenizer, TokenBytes, decoder, load_tokenizer
from dragoman.local_engine.text.stop_sequences import StopSequenceScanner

TOKENS = st.lists(
    st.one_of(st.integers(0, 255), st.sampled_from([226, 130, 172, 240, 159, 152, 128, 257])), max_size=60
)


@pytest.fixture(scope="module")
def tokenizer(folders: Folders) -> Tokenizer:
    return load_tokenizer(folders() / "tokenizer.json")


@pytest.fixture(scope="module")
def fallback() -> Tokenizer:
    """A tokenizer as SentencePiece makes them: words with a mark for the space before them, bytes as <0x..>."""
    words = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁a", "▁bc", "d", "▁", "é"]
    vocab = {word: index for index, word in enumerate(words)}
    made = Tokenizer(models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True))
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return made


@given(TOKENS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pieces_make_the_whole_text(tokenizer: Tokenizer, ids: list[int]) -> None:
    decode = decoder(tokenizer)
    detokenizer = Detokenizer(decode)
    pieces = [detokenizer.add(token) for token in ids]
    assert "".join(pieces) + detokenizer.finish() == decode(ids)


@given(st.text(max_size=30))
def test_a_piece_never_ends_within_a_character(tokenizer: Tokenizer, text: str) -> None:
    detokenizer = Detokenizer(decoder(tokenizer))
    pieces = [detokenizer.add(byte) for byte in text.encode("utf-8", "replace")]
    assert "".join(pieces) + detokenizer.finish() == text
    assert "�" in text or not any("�" in piece for piece in pieces)


@given(st.lists(st.integers(257, 261), max_size=20))
def test_words_keep_their_spaces(fallback: Tokenizer, ids: list[int]) -> None:
    decode = decoder(fallback)
    detokenizer = Detokenizer(decode)
    assert "".join([*(detokenizer.add(token) for token in ids), detokenizer.finish()]) == decode(ids)


def test_bytes_of_a_fallback_join_to_characters(fallback: Tokenizer) -> None:
    detokenizer = Detokenizer(decoder(fallback))
    euro = [byte + 1 for byte in "€".encode()]
    assert [detokenizer.add(token) for token in [258, *euro, 259]] == ["bc", "", "", "€", "d"]


def test_what_never_becomes_a_character_is_not_held_for_ever(tokenizer: Tokenizer) -> None:
    detokenizer = Detokenizer(decoder(tokenizer))
    assert "".join(detokenizer.add(255) for _ in range(200)).count("�") > 100


def test_token_bytes(tokenizer: Tokenizer, fallback: Tokenizer) -> None:
    level, other = TokenBytes(tokenizer), TokenBytes(fallback)
    assert [level(byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    assert level(256) == b"<|end|>" and level(9999) == b""
    assert [other(token) for token in (11, 258, 261)] == [b"\n", b" bc", "é".encode()]


STOPS = st.lists(st.text("abc", min_size=1, max_size=4), max_size=3)


@given(st.lists(st.text("abc", max_size=4), max_size=12), STOPS)
def test_text_is_shown_up_to_the_first_stop_string(pieces: list[str], stops: list[str]) -> None:
    scanner, shown, fed = StopSequenceScanner(stops), "", ""
    for piece in pieces:
        fed += piece
        shown += scanner.add(piece)
        assert not any(stop in shown for stop in stops)
        if scanner.found is not None:
            assert fed.startswith(shown + scanner.found) and scanner.add("more") == "" and scanner.finish() == ""
            return
    assert not any(stop in fed for stop in stops)
    assert shown + scanner.finish() == fed


def test_only_what_could_begin_a_stop_string_is_held() -> None:
    scanner = StopSequenceScanner(["END", "NO"])
    assert [scanner.add(text) for text in ("go E", "N", "gine N", "OW")] == ["go ", "", "ENgine ", ""]
    assert scanner.found == "NO"
