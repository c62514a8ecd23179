"""The databricks dialect of Messages: Anthropic's API for the Claude models, errors included.

The reference names no betas, and its example sends no version.

Source: Databricks, Query with the Anthropic Messages API; Query model services with the Anthropic Messages API.
"""

from __future__ import annotations

from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.messages.called import messages_called
from dragoman.adapters.messages.served import messages_served

from .addresses import messages_path
from .faults import WORDS

__all__ = ["CALLED", "SERVED"]

SERVED = messages_served("databricks", default_version="2023-06-01")
CALLED = messages_called(ReplyRules("databricks", words=WORDS), messages_path, takes_betas=False)
