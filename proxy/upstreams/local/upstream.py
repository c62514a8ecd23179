"""The upstream that is an engine on this machine: HTTP over its Unix socket, in OpenAI's dialect."""

from __future__ import annotations

from collections.abc import Iterator

import aiohttp

from dragoman.adapters.call import Call, Headers
from dragoman.adapters.faults import Fault
from dragoman.local_engine import embedded
from dragoman.proxy.config.models import Provider, Timeouts
from dragoman.proxy.upstreams.credentials import NONE
from dragoman.proxy.upstreams.http import HttpUpstream, HttpUpstreamResponse

from .supervisor import Supervisor

__all__ = ["LocalUpstream", "arguments"]

_LOST = {"upstream_disconnected", "upstream_unreachable"}
_OPTIONS = {"device": "device", "device_index": "index", "threads": "threads", "slots": "slots", "queue": "queue"}


class LocalUpstream:
    """One provider. Made inside a running event loop; its engine runs from `engine.start` to `close`."""

    def __init__(self, name: str, provider: Provider, timeouts: Timeouts) -> None:
        self.engine = Supervisor(name, [*arguments(provider)], provider.step_timeout)
        connector = aiohttp.UnixConnector(str(self.engine.socket), limit=0)  # the engine's queue is the limit
        self._http = HttpUpstream(name, provider, timeouts, NONE, connector)

    async def send(self, call: Call, *, stream: bool, forwarded: Headers) -> HttpUpstreamResponse:
        """Raises Fault."""
        try:
            await self.engine.ready()
            return await self._http.send(call, stream=stream, forwarded=forwarded)
        except Fault as fault:
            if fault.code in _LOST:
                await self.engine.lost()
            raise

    async def close(self) -> None:
        await self._http.close()
        await self.engine.stop()


def arguments(provider: Provider) -> Iterator[str]:
    """What the engine's process is started with, beside its socket."""
    if provider.model_dir is None:
        yield from ("--model-dir", str(embedded.embedded_folder()), "--name", embedded.NAME)
    else:
        yield from ("--model-dir", provider.model_dir)
    for key, option in _OPTIONS.items():
        yield from (f"--{option}", str(getattr(provider, key)))
    if provider.context is not None:
        yield from ("--context", str(provider.context))
