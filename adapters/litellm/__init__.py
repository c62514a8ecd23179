"""The dialect of litellm's functions: OpenAI's chat and embeddings, whose parameters are arguments.

It is only called, never served. A provider has it if its configuration says `engine: litellm`.
"""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from . import chat, embeddings

__all__ = ["LITELLM"]

_CALLED = {"chat": chat.CALLED, "embeddings": embeddings.CALLED}

LITELLM = Dialect(name="litellm", profiles=("actual",), auth={}, called=_CALLED)
