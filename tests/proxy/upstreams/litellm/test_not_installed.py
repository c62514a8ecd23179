"""A proxy whose route needs litellm, in an environment without it."""

from __future__ import annotations

import importlib.util

import pytest

from dragoman.proxy.config.litellm import INSTALL
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import StartError, start


@pytest.mark.skipif(importlib.util.find_spec("litellm") is not None, reason="litellm is installed here")
async def test_the_proxy_does_not_start_and_says_what_to_install() -> None:
    provider = {"engine": "litellm", "vendor": "anthropic"}
    models = {"m": {"targets": [{"provider": "any", "model": "claude"}]}}
    config = Config.from_values({"server": {"port": 0}, "providers": {"any": provider}, "models": models})
    with pytest.raises(StartError) as caught:
        await start(config, log_level="critical")
    text = str(caught.value)
    assert text.startswith("the engine litellm cannot start: No module named 'litellm'") and INSTALL in text
