"""A tokenizer without training, for models of random weights: 256 bytes, then special tokens."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject

from .spec import ExportError, ModelSpec

__all__ = ["BYTE_SPECIALS", "byte_tokenizer"]

BYTE_SPECIALS = ("<|end|>", "<|user|>", "<|assistant|>", "<|system|>")


def byte_tokenizer(spec: ModelSpec) -> JsonObject:
    """tokenizer.json of a byte-level tokenizer: byte b is token b, then special and unused tokens."""
    if spec.vocab < 256 + len(BYTE_SPECIALS):
        raise ExportError(
            f"a vocabulary of {spec.vocab} is too small for 256 bytes and {len(BYTE_SPECIALS)} special tokens"
        )
    vocab = {symbol: byte for byte, symbol in enumerate(_byte_symbols())}
    added = [*BYTE_SPECIALS, *(f"<|unused-{i}|>" for i in range(spec.vocab - 256 - len(BYTE_SPECIALS)))]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": 256 + i, "content": content, "special": i < len(BYTE_SPECIALS), **flags}
            for i, content in enumerate(added)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    }


def _byte_symbols() -> list[str]:
    """The visible character of each byte in byte-level BPE."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(byte if byte in plain else next(spare)) for byte in range(256)]
