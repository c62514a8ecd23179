"""The life cycle of the proxy: start, run, drain, stop."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Mapping
from random import Random

from dragoman.adapters import dialects as all_dialects
from dragoman.adapters.dialect import Dialect
from dragoman.proxy.config.keyfile import BadKeyFile
from dragoman.proxy.config.models import Config
from dragoman.proxy.conversations.stores.factory import open_store
from dragoman.proxy.conversations.stores.interface import ResponseStore, StoreError
from dragoman.proxy.http.aiohttp_server import HttpServer
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.telemetry.log import Log, LogOutput, create_log
from dragoman.proxy.telemetry.mask import Mask, collect_secrets
from dragoman.proxy.upstreams.credentials import CredentialObserver
from dragoman.proxy.upstreams.factory import log_engines, start_engines
from dragoman.proxy.upstreams.interface import Upstream
from dragoman.proxy.upstreams.supervision.supervisor import EngineError

from .gateway import Gateway

__all__ = ["RunningProxy", "StartError", "start"]

_GRACE = 5.0  # seconds for interrupted exchanges to send their fault


class StartError(Exception):
    """The proxy cannot start; the text says why, and what to do."""


class RunningProxy:
    """A proxy that listens. `stop` drains it; `stop_now`, once set, ends all waiting of `stop`."""

    def __init__(self, config: Config, gateway: Gateway, server: HttpServer, listener: asyncio.Server) -> None:
        self.config = config
        self._drain = config.server.drain
        self._gateway = gateway
        self._server = server
        self._listener = listener
        self.host = config.server.host
        self.port: int = listener.sockets[0].getsockname()[1]
        self.stop_now = asyncio.Event()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def request_count(self) -> int:
        """How many requests are being answered."""
        return len(self._gateway.running)

    @property
    def log(self) -> Log:
        return self._gateway.log

    @property
    def upstreams(self) -> list[Upstream]:
        return self._gateway.state.upstreams

    def log_engines(self) -> None:
        """Log the event `engine_ready` for each engine. Not part of `start`, so that a caller can print first."""
        log_engines(self._gateway.state.routed_upstreams, self._gateway.log)

    async def stop(self) -> None:
        """Report 503 at /ready for `drain.delay` seconds, then refuse new connections, let running exchanges end for
        `drain.timeout` seconds, and end the rest with a fault. `stop_now` ends all waiting."""
        gateway = self._gateway
        gateway.draining = True
        await self._pause(self._drain.delay, asyncio.Event())
        self._listener.close()
        self._server.pre_shutdown()
        await self._pause(self._drain.timeout, gateway.idle)
        if gateway.running:
            gateway.stop_exchanges()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(gateway.idle.wait(), _GRACE)
        await self._server.shutdown(0.1)
        await gateway.state.close()
        if gateway.store is not None:
            await gateway.store.close()

    async def _pause(self, seconds: float, until: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (until, self.stop_now)]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


async def start(
    config: Config,
    *,
    dialects: Mapping[str, Dialect] = all_dialects,
    insecure: bool = False,
    log_format: str = "json",
    log_level: str = "info",
    log_stream: LogOutput | None = None,
    random: Random | None = None,
) -> RunningProxy:
    """Start the engines, open the store, and listen, in the running event loop. Raises StartError."""
    server = config.server
    if not (config.keys or insecure or _is_loopback(server.host)):
        raise StartError(
            f"refusing to listen on {server.host} without keys: anyone who reaches it could use your providers.\n"
            "Add `keys:` to the configuration, listen on 127.0.0.1, or pass --insecure."
        )
    mask = Mask(collect_secrets(config))
    log = create_log(mask, log_format, log_level, log_stream)
    state = _create_state(config, dialects, random, CredentialObserver(mask.add_secret, log.warning))
    try:
        await _start_engines(state, log)
        store = await _open_store(config, log)
    except BaseException:
        await state.close()
        raise
    gateway = Gateway(config, dialects, state, store, log, mask)
    web_server = HttpServer(gateway, server.header_timeout)
    try:
        listener = await asyncio.get_running_loop().create_server(web_server, server.host, server.port, backlog=1024)
    except OSError as error:
        await state.close()
        if store is not None:
            await store.close()
        reason = error.strerror or str(error)
        text = f"cannot listen on {server.host}:{server.port}: {reason}"
        raise StartError(
            f"{text}\nStop the process that uses the address, or choose another port (--port, server.port)."
        ) from None
    return RunningProxy(config, gateway, web_server, listener)


def _create_state(
    config: Config, dialects: Mapping[str, Dialect], random: Random | None, observer: CredentialObserver
) -> RouterState:
    try:
        return RouterState(config, dialects, random, observer=observer)
    except OSError as error:  # ssl.SSLError included
        raise StartError(f"a provider's TLS files or key file cannot be read: {error}") from None
    except BadKeyFile as error:
        raise StartError(f"a provider's key file contains no key: {error}") from None


async def _start_engines(state: RouterState, log: Log) -> None:
    try:
        await start_engines(state.routed_upstreams, log)
    except EngineError as error:
        raise StartError(str(error)) from None


async def _open_store(config: Config, log: Log) -> ResponseStore | None:
    try:
        return await open_store(config.store, lambda error: log.error("store", reason=error.reason, message=str(error)))
    except StoreError as error:
        place = "XDG_STATE_HOME to a folder" if config.store.path is None else "store.path to a file"
        hint = f"Set {place} that can be written to, or set store.kind in the configuration to memory or none."
        raise StartError(f"{error}\n{hint}") from None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
