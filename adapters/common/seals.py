"""Decides whether a model can read sealed reasoning: a signature, or encrypted reasoning, of an earlier turn.

Only the vendor of the model that made it can verify or decrypt it; every other provider refuses the request. A sealed
text does not name its maker, but the vendors' formats begin differently, and a vendor's models have telling names.

Sources: Anthropic, Extended thinking: signatures and redacted thinking are base64 of a message whose first field is its
second, and are valid on every platform that serves Claude. OpenAI, Reasoning models: encrypted content is a Fernet
token. Google, Thought signatures.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

__all__ = ["Maker", "is_foreign_maker", "is_foreign_seal"]

Maker: TypeAlias = Literal["anthropic", "openai", "google", "none"]
"""A vendor whose models seal reasoning; `none` for models that never do."""

_FORMATS: tuple[tuple[re.Pattern[str], frozenset[Maker]], ...] = (
    (re.compile("gAAAA"), frozenset({"openai"})),
    (re.compile("E[g-v]"), frozenset({"anthropic", "google"})),
)
_MODELS: tuple[tuple[re.Pattern[str], Maker], ...] = (
    (re.compile(r"deepseek|kimi|glm|qwen|llama|mistral|magistral|minimax|mimo|gpt-?oss|gemma", re.I), "none"),
    (re.compile(r"claude", re.I), "anthropic"),
    (re.compile(r"gemini", re.I), "google"),
    (re.compile(r"gpt-?\d|codex|(^|[/-])o\d", re.I), "openai"),
)


def is_foreign_seal(sealed: str, model: str, default: Maker | None = None) -> bool:
    """Whether `model`, a provider's name for it, cannot read `sealed`.

    `default` is the maker if the name says nothing. If either maker is unknown, the answer is no.
    """
    maker = _find_maker(model) or default
    if maker == "none":
        return True
    makers = next((makers for form, makers in _FORMATS if form.match(sealed)), None)
    return maker is not None and makers is not None and maker not in makers


def is_foreign_maker(maker: Maker, model: str, default: Maker | None = None) -> bool:
    """Whether `model`, a provider's name for it, is known to be of another vendor than `maker`.

    `default` is the model's maker if its name says nothing.
    """
    return (_find_maker(model) or default) not in (None, maker)


@lru_cache(maxsize=1024)
def _find_maker(model: str) -> Maker | None:
    return next((maker for name, maker in _MODELS if name.search(model)), None)
