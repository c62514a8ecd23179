"""litellm itself, with everything switched off except calls.

The proxy has its own retries, fallbacks and log; litellm's callbacks, caches and cost maps are not used. Its HTTP
clients follow no redirects, and have the proxy's timeout for connecting. Its switches are set in the environment of
this process.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Callable
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from dragoman.proxy.config.litellm import INSTALL

__all__ = ["CONNECT_TIMEOUT", "disconnect", "load_litellm", "warm_up"]

CONNECT_TIMEOUT: ContextVar[float] = ContextVar("connect_timeout")
"""Seconds that connecting may take, for the calls of the current task."""

_SWITCHES = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION", "LITELLM_LOG": "CRITICAL"}
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


def load_litellm() -> Any:
    """Import litellm, and configure it. This takes seconds. Raises ImportError, which says what to install."""
    os.environ.update(_SWITCHES)
    try:
        litellm: Any = import_module("litellm")
        handler: Any = import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}: the engine litellm needs the extra litellm; {INSTALL}") from error
    for name, value in _OFF.items():
        setattr(litellm, name, value)
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    handler.create_client = _restrict_clients(handler.create_client)
    return litellm


async def warm_up(litellm: Any) -> None:
    """Make the first calls, at which litellm loads modules: one that it mocks, and one to a port without a server."""
    call = {
        "model": "anthropic/none",
        "messages": [{"role": "user", "content": ""}],
        "api_key": "none",
        "max_retries": 0,
    }
    async for _ in await litellm.acompletion(**call, stream=True, mock_response="none"):
        pass
    with contextlib.suppress(litellm.exceptions.openai.APIError), socket.socket() as unserved:
        unserved.bind(("127.0.0.1", 0))  # taken, and not listened on
        await litellm.acompletion(**call, api_base=f"http://127.0.0.1:{unserved.getsockname()[1]}")
    await disconnect(litellm)


async def disconnect(litellm: Any) -> None:
    """Close its connections."""
    await litellm.module_level_aclient.close()
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()


def _restrict_clients(create: Callable[..., Any]) -> Callable[..., Any]:
    def create_restricted(*args: Any, **kwargs: Any) -> Any:
        client = create(*args, **kwargs)
        client.follow_redirects = False
        client.event_hooks["request"].append(_limit_connecting)
        return client

    return create_restricted


async def _limit_connecting(request: Any) -> None:
    with contextlib.suppress(LookupError):
        request.extensions["timeout"]["connect"] = CONNECT_TIMEOUT.get()
