"""The mindie dialect: MindIE's OpenAI-compatible endpoint."""

from __future__ import annotations

import re

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.listing import ModelList
from dragoman.adapters.providers import BaseAddress, EnvironmentProvider

from .chat import CALLED
from .chat_served import SERVED
from .models import INFORMATION

__all__ = ["DIALECT"]

DIALECT = Dialect(
    name="mindie",
    profiles=("documented", "actual", "native"),
    served_profile="documented",
    auth={"bearer": {"Authorization": "Bearer {}"}},
    served={"chat": SERVED},
    called={"chat": CALLED},
    paths={"chat": ("/mindie/v1/chat/completions",)},
    information=INFORMATION,
    base_address=BaseAddress("/v1/chat/completions", re.compile(r"/v1(/chat(/completions)?)?$")),
    model_list=ModelList("/v1/models"),
    environment=(
        EnvironmentProvider("mindie", ("MINDIE_API_KEY",), "${MINDIE_BASE_URL:-https://127.0.0.1:1025}", ("chat",)),
    ),
)
