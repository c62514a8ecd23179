"""Incremental detokenization: text is returned when its characters are complete.

Text is complete when more tokens cannot change it: it does not end in a replacement character, which is how the bytes
of an incomplete character decode. Tokens are decoded together with those before them, because some decoders treat the
first token of a text differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Decode", "Detokenizer", "TokenBytes", "load_tokenizer", "make_decode"]

Decode: TypeAlias = Callable[[Sequence[int]], str]
MAX_PENDING_TOKENS = 64
"""Tokens that may wait for a complete character. After that, their text is returned with replacement characters."""
REPLACEMENT = "�"


def load_tokenizer(file: Path) -> Tokenizer:
    """Load tokenizer.json, with padding and truncation off."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def make_decode(tokenizer: Tokenizer, *, skip_special: bool = True) -> Decode:
    """Return the function that decodes token ids with this tokenizer."""
    return lambda ids: tokenizer.decode(ids, skip_special_tokens=skip_special)


class Detokenizer:
    """Decodes the tokens of one choice."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._context = 0
        self._context_text = ""

    @property
    def pending(self) -> int:
        """How many tokens have text that is not returned yet."""
        return len(self._ids) - self._context

    def add(self, token: int) -> str:
        """Add a token; return the text that is complete now, often empty."""
        self._ids.append(token)
        text = self._decode(self._ids)
        if text.endswith(REPLACEMENT) and self.pending < MAX_PENDING_TOKENS:
            return ""
        return self._take_text(text)

    def finish(self) -> str:
        """Return the remaining text, with a replacement character for each incomplete character."""
        return self._take_text(self._decode(self._ids)) if self.pending else ""

    def _take_text(self, text: str) -> str:
        new = text[len(self._context_text) :]
        self._ids = self._ids[self._context :]
        self._context = len(self._ids)
        self._context_text = self._decode(self._ids)
        return new


class TokenBytes:
    """Maps a token to its bytes, for byte-level BPE, byte fallback (`<0x0A>`) and plain text tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._added = tokenizer.get_added_tokens_decoder()
        kind = tokenizer.decoder.__getstate__() if tokenizer.decoder is not None else b""
        self._symbols = _map_symbols_to_bytes() if b'"ByteLevel"' in kind else {}

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


def _map_symbols_to_bytes() -> dict[str, int]:
    """Map each visible character of byte-level BPE to its byte."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return {chr(byte if byte in plain else next(spare)): byte for byte in range(256)}
