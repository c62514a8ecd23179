"""What litellm takes and gives: OpenAI's chat and embeddings, as the arguments of litellm's functions have them.

It is called, never served, and no value of a provider's `dialect`: the engine `litellm` brings it.
"""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from . import chat, embeddings

__all__ = ["LITELLM"]

_CALLED = {"chat": chat.CALLED, "embeddings": embeddings.CALLED}

LITELLM = Dialect(name="litellm", profiles=("actual",), auth={}, called=_CALLED)
