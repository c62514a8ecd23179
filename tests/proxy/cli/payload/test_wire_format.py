"""Dialects that clients do not speak, or providers do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dragoman.adapters import dialects
from dragoman.proxy.cli.payload.translate import TranslationTask
from dragoman.proxy.cli.payload.usage_error import UsageError
from dragoman.proxy.cli.payload.wire_format import WireFormat

MINDIE = dialects["mindie"]
CALLED = WireFormat(replace(MINDIE, served={}, paths={}, information={}), "chat")
SERVED = WireFormat(replace(MINDIE, called={}), "chat")


def test_each_side_has_to_be_spoken() -> None:
    TranslationTask(SERVED, CALLED)
    with pytest.raises(UsageError, match="mindie/chat is not served to clients"):
        TranslationTask(CALLED, CALLED)
    with pytest.raises(UsageError, match="no provider is called with mindie/chat"):
        TranslationTask(SERVED, SERVED)
