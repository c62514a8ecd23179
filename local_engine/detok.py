"""Tokens to text, piece by piece, never with half a character.

A piece is settled when more tokens cannot change it: its end is no replacement character, which is what the bytes of an
unfinished character decode to. Some tokens are decoded together with the ones before them, for decoders that treat the
first token of a text in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Decode", "Detokenizer", "TokenBytes", "decoder", "load_tokenizer"]

Decode: TypeAlias = Callable[[Sequence[int]], str]
HELD_TOKENS = 64
"""Tokens whose text is not settled; beyond, it is given out with replacement characters in it."""
UNFINISHED = "�"


def load_tokenizer(file: Path) -> Tokenizer:
    """The tokenizer of a folder, with padding and truncation off."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def decoder(tokenizer: Tokenizer, *, skip_special: bool = True) -> Decode:
    return lambda ids: tokenizer.decode(ids, skip_special_tokens=skip_special)


class Detokenizer:
    """The text of one choice."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._context = 0
        self._before = ""

    @property
    def held(self) -> int:
        """Tokens whose text is not given out yet."""
        return len(self._ids) - self._context

    def add(self, token: int) -> str:
        """The text that this token settles, often empty."""
        self._ids.append(token)
        text = self._decode(self._ids)
        if text.endswith(UNFINISHED) and self.held < HELD_TOKENS:
            return ""
        return self._settle(text)

    def finish(self) -> str:
        """What is left, with a replacement character for each character that stayed unfinished."""
        return self._settle(self._decode(self._ids)) if self.held else ""

    def _settle(self, text: str) -> str:
        new = text[len(self._before) :]
        self._ids = self._ids[self._context :]
        self._context = len(self._ids)
        self._before = self._decode(self._ids)
        return new


class TokenBytes:
    """The bytes of single tokens: of byte-level BPE, of byte fallback (`<0x0A>`), or of their text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._added = tokenizer.get_added_tokens_decoder()
        kind = tokenizer.decoder.__getstate__() if tokenizer.decoder is not None else b""
        self._symbols = _byte_symbols() if b'"ByteLevel"' in kind else {}

    def __call__(self, token: int) -> bytes:
        word = self._tokenizer.id_to_token(token)
        if word is None:
            return b""
        if token in self._added:
            return word.encode()
        if self._symbols:
            return bytes(self._symbols[symbol] for symbol in word)
        if len(word) == 6 and word.startswith("<0x") and word.endswith(">"):
            return bytes([int(word[3:5], 16)])
        return word.replace("▁", " ").encode()


def _byte_symbols() -> dict[str, int]:
    """The visible character that byte-level BPE writes for each byte, turned round."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return {chr(byte if byte in plain else next(spare)): byte for byte in range(256)}
