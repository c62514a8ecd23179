"""The work that `engine.py` gives to all: prompts of random tokens, each continued by as many."""

from __future__ import annotations

__all__ = ["PROMPT", "TOKENS", "prompt"]

PROMPT, TOKENS = 16, 128


def prompt(number: int, length: int = PROMPT) -> list[int]:
    return [(number * 7919 + i * 104729) % 8000 for i in range(length)]
