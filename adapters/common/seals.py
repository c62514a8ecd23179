"""Decides whether a model can read sealed reasoning: a signature, or encrypted reasoning, of an earlier turn.

Only the vendor of the model that made it can verify or decrypt it; every other provider refuses the request. A sealed
text does not name its maker, but the vendors' formats begin differently. Which seals a model can read is a fact about
it (`schemas/models`).

Sources: Anthropic, Extended thinking: signatures and redacted thinking are base64 of a message whose first field is its
second, and are valid on every platform that serves Claude. OpenAI, Reasoning models: encrypted content is a Fernet
token. Google, Thought signatures.
"""

from __future__ import annotations

import re

from dragoman.adapters.model_facts import Maker

__all__ = ["is_foreign_maker", "is_foreign_seal"]

_FORMATS: tuple[tuple[re.Pattern[str], frozenset[Maker]], ...] = (
    (re.compile("gAAAA"), frozenset({"openai"})),
    (re.compile("E[g-v]"), frozenset({"anthropic", "google"})),
)


def is_foreign_seal(sealed: str, reader: Maker | None) -> bool:
    """Whether a model that reads the seals of `reader` cannot read `sealed`. If either maker is unknown, it can."""
    if reader == "none":
        return True
    makers = next((makers for form, makers in _FORMATS if form.match(sealed)), None)
    return reader is not None and makers is not None and reader not in makers


def is_foreign_maker(maker: Maker, reader: Maker | None) -> bool:
    """Whether a model that reads the seals of `reader` is known to be of another vendor than `maker`."""
    return reader not in (None, maker)
