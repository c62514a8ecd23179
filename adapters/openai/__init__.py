"""The openai dialect."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from . import chat, completions, embeddings, responses
from .azure_addresses import FORM, called, served
from .models import INFORMATION

__all__ = ["OPENAI"]

_PROTOCOLS = {"chat": chat, "responses": responses, "completions": completions, "embeddings": embeddings}

OPENAI = Dialect(
    name="openai",
    profiles=("documented", "actual"),
    auth={"bearer": {"Authorization": "Bearer {}"}, "api-key": {"api-key": "{}"}},
    served={protocol: served(verbs.SERVED) for protocol, verbs in _PROTOCOLS.items()},
    called={protocol: called(verbs.CALLED) for protocol, verbs in _PROTOCOLS.items()},
    addresses={FORM: "api-key"},
    keeps_responses=True,
    information=INFORMATION,
)
