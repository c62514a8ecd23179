"""What litellm takes and gives: OpenAI's chat as litellm's functions have it. It is called, never served, and no value
of a provider's `dialect`: the engine `litellm` brings it."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from . import chat

__all__ = ["LITELLM"]

LITELLM = Dialect(name="litellm", profiles=("actual",), auth={}, called={"chat": chat.CALLED})
