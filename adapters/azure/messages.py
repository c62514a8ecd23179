"""The azure dialect of Messages: Claude on a resource of Azure AI Foundry, with Anthropic's API.

Its addresses are another form: a resource has `/anthropic/v1/messages` next to `/models`, which is where the others
are. Its clients use the same address as Anthropic's, and are served in that dialect; `/azure/anthropic/v1/messages` is
served here.

Source: anthropic 2.12.0, AnthropicFoundry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.messages.called import messages_called
from dragoman.adapters.messages.served import messages_served
from dragoman.adapters.providers import AddressForm, BaseAddress

from .faults import WORDS

__all__ = ["CALLED", "FORMS", "PATHS", "SERVED"]

_PATH = "/anthropic/v1/messages"

PATHS: Mapping[str, tuple[str, ...]] = {
    "messages": (f"/azure{_PATH}",),
    "count_tokens": (f"/azure{_PATH}/count_tokens",),
}
FORMS: Mapping[str, AddressForm] = {
    "anthropic": AddressForm(
        "Azure AI Foundry's Claude models",
        BaseAddress(_PATH, re.compile(r"/(anthropic|models)(/.*)?$")),
        auth="x-api-key",
        own=re.compile(r"/anthropic(/.*)?$"),
        paths=PATHS,
    )
}
SERVED = messages_served("azure")
CALLED = messages_called(ReplyRules("azure", words=WORDS), lambda _: _PATH)
