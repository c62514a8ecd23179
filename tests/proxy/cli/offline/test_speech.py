"""Dialects that clients do not speak, or providers do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dragoman.adapters import dialects
from dragoman.proxy.cli.offline.misuse import Misuse
from dragoman.proxy.cli.offline.speech import Speech
from dragoman.proxy.cli.offline.translate import Task

MINDIE = dialects["mindie"]
CALLED = Speech(replace(MINDIE, served={}, paths={}, information={}), "chat")
SERVED = Speech(replace(MINDIE, called={}), "chat")


def test_each_side_has_to_be_spoken() -> None:
    Task(SERVED, CALLED)
    with pytest.raises(Misuse, match="mindie/chat is not served to clients"):
        Task(CALLED, CALLED)
    with pytest.raises(Misuse, match="no provider is called with mindie/chat"):
        Task(SERVED, SERVED)
