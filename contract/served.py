"""Whether a reply says that the endpoint does not serve a protocol at all."""

from __future__ import annotations

import re

from .exchange import Response

__all__ = ["is_not_served"]

_NOT_SERVED = (404, 405, 501)
_CLIENT_ERRORS = (400, 403, 422)
_SENTENCES = re.compile(
    r"""unsupported_protocol                                        # dragoman
    | \b(?:does|do)\ not\ support\ (?:the\ )?(?:chat|completions?|embeddings?|responses?)\b  # vLLM
    | \bis\ not\ an?\ (?:chat|completions?|embeddings?)\ endpoint\b   # MLflow gateway
    | \bnot\ (?:been\ )?implemented\b                               # MLflow gateway
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What gateways write in a 400, 403 or 422 about an address that they have but do not serve."""


def is_not_served(response: Response) -> bool:
    """Whether the reply to a probe says that the endpoint does not serve the probe's protocol."""
    if response.status in _NOT_SERVED:
        return True
    return response.status in _CLIENT_ERRORS and bool(_SENTENCES.search(response.body.decode("utf-8", "replace")))
