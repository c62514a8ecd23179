"""The work of `engine.py`, the same for every engine: prompts of random tokens, each continued by TOKENS tokens."""

from __future__ import annotations

__all__ = ["PROMPT", "TOKENS", "make_prompt"]

PROMPT, TOKENS = 16, 128


def make_prompt(number: int, length: int = PROMPT) -> list[int]:
    return [(number * 7919 + i * 104729) % 8000 for i in range(length)]
