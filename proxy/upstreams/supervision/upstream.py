"""The upstream for a supervised server on this machine: HTTP over its Unix socket, in OpenAI's dialect."""

from __future__ import annotations

import aiohttp

from dragoman.adapters.call import Call, Headers
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Provider
from dragoman.proxy.config.traffic import Timeouts
from dragoman.proxy.telemetry.recording import RequestRecorder
from dragoman.proxy.upstreams.credentials import NO_CREDENTIALS
from dragoman.proxy.upstreams.http import HttpUpstream
from dragoman.proxy.upstreams.interface import UpstreamResponse

from .supervisor import Supervisor

__all__ = ["SupervisedUpstream"]

_REFUSED = "upstream_unreachable"
_BROKEN = {"upstream_disconnected", _REFUSED}


class SupervisedUpstream:
    """One user of a server. Created inside a running event loop; calls wait until the server is ready."""

    def __init__(self, name: str, provider: Provider, timeouts: Timeouts, engine: Supervisor) -> None:
        self.engine = engine
        engine.add_user()
        connector = aiohttp.UnixConnector(str(engine.socket), limit=0)  # the server limits what runs at once
        self._http = HttpUpstream(name, provider, timeouts, NO_CREDENTIALS, connector)

    async def send(
        self,
        call: Call,
        *,
        stream: bool,
        forwarded: Headers,
        recorder: RequestRecorder | None = None,
        written: bytes | None = None,
    ) -> UpstreamResponse:
        """Send a call as soon as the server is ready. If nobody listened, the call has not begun: the next process gets
        it. Raises Fault."""
        await self.engine.wait_until_ready()
        try:
            return await self._http.send(call, stream=stream, forwarded=forwarded, recorder=recorder, written=written)
        except Fault as fault:
            if fault.code not in _BROKEN:
                raise
            await self.engine.detect_end()
            if fault.code != _REFUSED:
                raise
        await self.engine.wait_until_ready()
        return await self._http.send(call, stream=stream, forwarded=forwarded, recorder=recorder, written=written)

    async def close(self) -> None:
        await self._http.close()
        await self.engine.remove_user()
