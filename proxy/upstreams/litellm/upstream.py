"""The upstream for litellm, which runs in one process for all providers of the engine litellm.

litellm looks for keys, addresses and switches in hundreds of environment variables, at import and at every call. So it
runs in a process with an empty environment, and gets everything with each call over the Unix socket:

    POST /chat/completions   {"arguments": {...}, "settings": {...}}

`arguments` come from the client's request, `settings` from the configuration, keys included; settings win. The
reply is what a provider of the openai dialect would send (`process/server.py`).

One process serves all providers: it needs 160 MB and seconds to load, and holds no state of a provider between calls.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import orjson

from dragoman.adapters.call import Call, Headers, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Provider
from dragoman.proxy.config.traffic import Timeouts
from dragoman.proxy.telemetry.recording import RequestRecorder
from dragoman.proxy.telemetry.sent_secrets import find_secret_headers
from dragoman.proxy.upstreams.interface import UpstreamResponse
from dragoman.proxy.upstreams.supervision.process import Command, isolated_environment
from dragoman.proxy.upstreams.supervision.supervisor import Supervisor
from dragoman.proxy.upstreams.supervision.upstream import SupervisedUpstream

from .protocol import FAULT_HEADER

__all__ = ["COMMAND", "LitellmUpstream", "create_supervisor", "function_arguments", "provider_settings"]

COMMAND = (sys.executable, "-P", "-m", "dragoman.proxy.upstreams.litellm.process")

_HANG_TIMEOUT = 60.0  # seconds in which the process must answer /health; some vendors' libraries block it for a while
_SOCKET = Provider(dialect="openai", base_url="http://litellm")
_OFF: Mapping[str, JsonObject] = {"/chat/completions": {"_skip_mcp_handler": True}}


class LitellmUpstream:
    """One provider. `engine` is the process, which all of them share."""

    def __init__(self, name: str, provider: Provider, timeouts: Timeouts, engine: Supervisor) -> None:
        self.engine = engine
        self._name = name
        self._provider = provider
        self._settings = provider_settings(provider, timeouts)
        self._sent_secrets = _find_sent_secrets(provider)
        self._process = SupervisedUpstream(name, _SOCKET, timeouts, engine)

    async def send(
        self,
        call: Call,
        *,
        stream: bool,
        forwarded: Headers,
        recorder: RequestRecorder | None = None,
        written: bytes | None = None,
    ) -> UpstreamResponse:
        """Send a call to the process, without the client's headers. Raises Fault."""
        message = {"arguments": function_arguments(self._provider, call), "settings": self._settings}
        sent = Call("POST", call.path, message)
        response = await self._process.send(sent, stream=stream, forwarded={}, recorder=recorder)
        if FAULT_HEADER in response.headers:
            raise _to_fault(self._name, orjson.loads(await _read_body(response)))
        response.sent_secrets = self._sent_secrets
        return response

    async def close(self) -> None:
        await self._process.close()


class LitellmError(Exception):
    """An exception in the process, as the cause of a fault."""


def create_supervisor() -> Supervisor:
    """The supervisor of the process for all providers."""
    command = Command(COMMAND, isolated_environment, in_private_folder=True)
    return Supervisor("litellm", command, _HANG_TIMEOUT)


def function_arguments(provider: Provider, call: Call) -> JsonObject:
    """The arguments of litellm's function, without credentials and address. The model always begins with the vendor, so
    that litellm takes no other part of it for one."""
    model = f"{provider.vendor}/{call.body['model']}" if provider.vendor else call.body["model"]
    return {**call.body, **_OFF.get(call.path, {}), "model": model}


def provider_settings(provider: Provider, timeouts: Timeouts) -> JsonObject:
    """The configuration as arguments of litellm's functions, and `connect_timeout` in seconds."""
    settings: dict[str, Any] = {name: secret.get_secret_value() for name, secret in provider.parameters.items()}
    settings |= {"timeout": timeouts.total, "connect_timeout": timeouts.connect, "max_retries": 0, "num_retries": 0}
    if provider.api_key is not None:
        settings["api_key"] = provider.api_key.get_secret_value()
    if provider.base_url is not None:
        settings["api_base"] = provider.base_url
    if provider.headers:
        settings["extra_headers"] = dict(provider.headers)
    return settings


def _find_sent_secrets(provider: Provider) -> tuple[bytes, ...]:
    given = {"api_key": provider.api_key, **provider.parameters}
    texts = {name: secret.get_secret_value() for name, secret in given.items() if secret is not None}
    return find_secret_headers({**texts, **provider.headers})


async def _read_body(response: UpstreamResponse) -> bytes:
    parts = []
    while part := await response.read_chunk():
        parts.append(part)
    return b"".join(parts)


def _to_fault(name: str, failure: JsonObject) -> Fault:
    fault = Fault(failure["kind"], f"{name}: {failure['text']}", code=failure["code"])
    fault.__cause__ = LitellmError(failure["cause"])
    return fault
