"""The groq dialect: OpenAI's chat without `seed`, which ends with a word of its own."""

from __future__ import annotations

import re

from dragoman.adapters.chat.called import chat_called
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.providers import BaseAddress, EnvironmentProvider

__all__ = ["DIALECT"]

DIALECT = Dialect(
    name="groq",
    auth={"bearer": {"Authorization": "Bearer {}"}},
    called={"chat": chat_called(ReplyRules("groq", finish={"eos": "stop"}))},
    base_address=BaseAddress("/chat/completions", re.compile(r"/chat(/completions)?$"), version="/v1"),
    environment=(EnvironmentProvider("groq", ("GROQ_API_KEY",), "https://groq.test/openai/v1", ("chat",)),),
)
