"""Whether the error of a request says that the model, not the server, lacks a capability that the case needs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .model import Case
from .outcome import Outcome

__all__ = ["find_lacking_capability"]

_CLIENT_ERRORS = (400, 404, 415, 422, 501)
_SENTENCES: Mapping[str, re.Pattern[str]] = {
    "vision": re.compile(
        r"""\bnot\ a\ multimodal\ model\b                                             # vLLM
        | \bno\ endpoints\ found\ that\ support\ image\ input\b                       # OpenRouter
        | \b(?:not|n't)\ (?:have\ )?support\w*\ (?:for\ )?(?:image|vision|multimodal) # OpenAI, Ollama, llama.cpp
        """,
        re.IGNORECASE | re.VERBOSE,
    ),
    "dimensions": re.compile(
        r"""\bnot\ support\ (?:matryoshka|(?:specifying\ |changing\ )?(?:output\ )?dimensions)\b  # vLLM, OpenAI""",
        re.IGNORECASE | re.VERBOSE,
    ),
}
"""What servers write about a model, by capability."""


def find_lacking_capability(case: Case, outcome: Outcome) -> str:
    """Return the capability of `case.needs` that the model lacks, as the error says; empty if it says nothing of it.
    A fake provider behind a proxy lacks none."""
    if outcome.upstream is not None or outcome.response.status not in _CLIENT_ERRORS:
        return ""
    named = (name for name in sorted(case.needs & _SENTENCES.keys()) if _SENTENCES[name].search(outcome.text))
    return next(named, "")
