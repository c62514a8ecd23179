"""The library itself: loaded once, when a route needs it, with everything off that it would do beside calling.

Retries, fallbacks and caching are ours or nobody's; callbacks, cost maps and logs of its own are not wanted; the
environment is shut out (`blindness`). Its HTTP clients follow no redirect and give a connection no more time than ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from typing import Any

from dragoman.proxy.config.litellm import INSTALL

from .blindness import blind

__all__ = ["CONNECT", "disconnect", "load"]

CONNECT: ContextVar[float] = ContextVar("connect")
"""Seconds in which a connection has to stand, for the calls of the current task."""

_BLIND = frozenset({"litellm", "openai", "tiktoken", "boto3", "botocore"})
_ENVIRON = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION", "LITELLM_LOG": "CRITICAL"}
_OFF: dict[str, Any] = {
    "telemetry": False,
    "drop_params": False,
    "modify_params": False,
    "num_retries": 0,
    "cache": None,
    "model_fallbacks": None,
    "callbacks": [],
    "input_callback": [],
    "success_callback": [],
    "failure_callback": [],
    "service_callback": [],
    "suppress_debug_info": True,
    "turn_off_message_logging": True,
    "disable_streaming_logging": True,
    "disable_aiohttp_transport": True,
    "disable_hf_tokenizer_download": True,
}


@lru_cache(maxsize=1)
def load() -> Any:
    """The module litellm. Takes seconds the first time. Raises ImportError, which says what to install."""
    blind(_BLIND, _ENVIRON)
    try:
        litellm: Any = import_module("litellm")
        handler: Any = import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}: the engine litellm needs its extra: {INSTALL}") from error
    for name, value in _OFF.items():
        setattr(litellm, name, value)
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    handler.create_client = _careful(handler.create_client)
    asyncio.run(_tried(litellm))
    return litellm


async def disconnect() -> None:
    """Close the connections of the current event loop, if the library was loaded at all."""
    if load.cache_info().currsize:
        await _disconnected(load())


async def _disconnected(litellm: Any) -> None:
    await litellm.module_level_aclient.close()
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()


async def _tried(litellm: Any) -> None:
    """Make it load what it loads at its first calls: one that it answers itself, and one to where nobody listens."""
    call = {
        "model": "anthropic/none",
        "messages": [{"role": "user", "content": ""}],
        "api_key": "none",
        "max_retries": 0,
    }
    async for _ in await litellm.acompletion(**call, stream=True, mock_response="none"):
        pass
    with contextlib.suppress(litellm.exceptions.openai.APIError), socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and not listened on
        await litellm.acompletion(**call, api_base=f"http://127.0.0.1:{nobody.getsockname()[1]}")
    await _disconnected(litellm)


def _careful(create: Callable[..., Any]) -> Callable[..., Any]:
    def created(*given: Any, **named: Any) -> Any:
        client = create(*given, **named)
        client.follow_redirects = False
        client.event_hooks["request"].append(_in_time)
        return client

    return created


async def _in_time(request: Any) -> None:
    with contextlib.suppress(LookupError):
        request.extensions["timeout"]["connect"] = CONNECT.get()
