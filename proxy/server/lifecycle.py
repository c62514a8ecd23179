"""The life cycle of the proxy: start, run, drain, stop."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from dragoman.adapters import dialects as all_dialects
from dragoman.adapters.dialect import Dialect
from dragoman.proxy.config.document import ConfigText
from dragoman.proxy.config.models import Config, Server
from dragoman.proxy.conversations.stores.factory import open_store
from dragoman.proxy.conversations.stores.interface import ResponseStore, StoreError
from dragoman.proxy.http.aiohttp_server import HttpServer
from dragoman.proxy.http.listener import listen, write_local_url, write_url
from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.log import Log, LogOutput, create_log
from dragoman.proxy.telemetry.mask import Mask, collect_secrets
from dragoman.proxy.telemetry.metrics import ExchangeMetrics
from dragoman.proxy.telemetry.tracing import INSTALL, Tracing
from dragoman.proxy.telemetry.usage_ledger import UsageLedger
from dragoman.proxy.upstreams.factory import log_engines
from dragoman.proxy.upstreams.interface import Upstream

from .gateway import Gateway
from .reload import ConfigSource, Reloader
from .serving_state import StartError, StateBuilder
from .usage_writer import UsageWriter

if TYPE_CHECKING:
    from .admin import AdminListener

__all__ = ["RunningProxy", "StartError", "start"]

_TICK = 0.05  # seconds between two looks at the connections while the proxy drains
_GRACE = 5.0  # seconds for interrupted exchanges to send their fault
_FLUSH = 0.5  # seconds for clients to read the end of their answer


class RunningProxy:
    """A proxy that listens. `stop` drains it; `stop_now`, once set, ends all waiting of `stop`."""

    def __init__(
        self,
        gateway: Gateway,
        server: HttpServer,
        listener: asyncio.Server,
        reloader: Reloader,
        admin: AdminListener | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._tracing = tracing
        self.reloader = reloader
        self._gateway = gateway
        self._server = server
        self._listener = listener
        self.admin = admin
        self.host = self.config.server.host
        self.port: int = listener.sockets[0].getsockname()[1]
        self.stop_now = asyncio.Event()

    @property
    def config(self) -> Config:
        """The configuration that new requests are served with."""
        return self._gateway.states.current.config

    @property
    def url(self) -> str:
        return write_url(self.host, self.port)

    @property
    def local_url(self) -> str:
        """An address for clients on this machine."""
        return write_local_url(self.host, self.port)

    @property
    def request_count(self) -> int:
        """How many requests are being answered."""
        return len(self._gateway.running)

    @property
    def log(self) -> Log:
        return self._gateway.log

    @property
    def inspector(self) -> Inspector:
        """What the page knows of exchanges."""
        return self._gateway.inspector

    @property
    def upstreams(self) -> list[Upstream]:
        return self._gateway.state.upstreams

    def log_engines(self) -> None:
        """Log the event `engine_ready` for each engine. Not part of `start`, so that a caller can print first."""
        log_engines(self._gateway.state.routed_upstreams, self._gateway.log)

    async def stop(self) -> None:
        """Drain, then release everything.

        Answer 503 at /ready for `drain.delay` seconds, then refuse new connections and close idle ones, let requests
        that have begun end for `drain.timeout` seconds, and end the rest with a fault. From the beginning on, every
        response closes its connection. `stop_now` ends all waiting.
        """
        gateway, server, drain = self._gateway, self._server, self.config.server.drain
        await self.reloader.close()
        gateway.draining = True
        server.drain()
        await self._wait(drain.delay)
        self._listener.close()
        await self._wait(_TICK)  # for requests that are on their way
        await self._wait(drain.timeout, self._has_requests)
        gateway.stop_exchanges()
        await _wait_while(lambda: bool(gateway.running), _GRACE)
        server.close_idle_connections()
        await _wait_while(lambda: bool(server.connections), _FLUSH)
        await server.shutdown(0.1)
        if self.admin is not None:
            await self.admin.close()
        gateway.overload.stop()
        gateway.memory_return.stop()
        gateway.worker.close()
        gateway.journal.catch_up()
        await gateway.states.close()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)
        await gateway.usage.close()
        if gateway.store is not None:
            await gateway.store.close()

    def _has_requests(self) -> bool:
        """True if a request is being received or answered. Other connections are closed."""
        self._server.close_idle_connections()
        return self._server.has_requests()

    async def _wait(self, seconds: float, is_busy: Callable[[], bool] = lambda: True) -> None:
        await _wait_while(lambda: is_busy() and not self.stop_now.is_set(), seconds)


async def _wait_while(is_busy: Callable[[], bool], seconds: float) -> None:
    """Wait until `is_busy` is false, for at most so many seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while is_busy() and (left := end - loop.time()) > 0:  # noqa: ASYNC110 - nothing tells when a connection is idle
        await asyncio.sleep(min(left, _TICK))


async def start(
    config: Config,
    *,
    dialects: Mapping[str, Dialect] = all_dialects,
    insecure: bool = False,
    log_format: str = "json",
    log_level: str = "info",
    log_stream: LogOutput | None = None,
    delays_log: bool = False,
    random: Random | None = None,
    source: ConfigSource | None = None,
    files: Sequence[Path] = (),
    text: ConfigText | None = None,
) -> RunningProxy:
    """Start the engines, open the store, and listen, in the running event loop. `source` reads the configuration again,
    and `files` are what it was read from; without a source it never changes. `text` is the file as the page shows it.
    With `delays_log`, exchanges that have ended wait a fiftieth of a second for others before they are written to the
    log, which takes less processor time. Raises StartError."""
    server = config.server
    mask = Mask(collect_secrets(config))
    log = create_log(mask, log_format, log_level, log_stream)
    ledger = UsageLedger()
    usage = UsageWriter(ledger, partial(_report_store_error, log))
    builder = StateBuilder(dialects, log, mask, ledger, random, insecure=insecure)
    metrics = None if server.admin_port is None else ExchangeMetrics()
    async with AsyncExitStack() as opened:
        tracing = _open_tracing(log, opened) if server.tracing else None
        state = await builder.build(config)
        opened.push_async_callback(state.router.close)
        store = await _open_store(config, log, usage, opened)
        call_later = asyncio.get_running_loop().call_later if delays_log else None
        gateway = Gateway(state, dialects, store, log, mask, usage, metrics, tracing, call_later)
        reloader = Reloader(source, builder, gateway.states, log, metrics)
        reloader.text = text
        gateway.page.reloader = reloader
        web_server = HttpServer(gateway, server.header_timeout, server.limits.connections)
        admin = None if metrics is None else await _open_admin_listener(server, gateway, web_server, metrics, reloader)
        if admin is not None:
            opened.push_async_callback(admin.close)
        same = "; server.admin_port is the same" if server.admin_port == server.port else ""
        listener = await _listen(web_server, server.host, server.port, f"--port, server.port{same}")
        opened.pop_all()  # it stays open
    gateway.page.client_port = listener.sockets[0].getsockname()[1]
    gateway.overload.start()
    gateway.memory_return.start()
    reloader.observers += [gateway.configure, partial(_configure_listeners, web_server, admin)]
    reloader.start(files)
    return RunningProxy(gateway, web_server, listener, reloader, admin, tracing)


def _configure_listeners(web_server: HttpServer, admin: AdminListener | None, config: Config) -> None:
    """Let the listeners follow a new configuration."""
    web_server.configure(config.server.header_timeout, config.server.limits.connections)
    if admin is not None:
        admin.configure(config.server)


_LISTEN_HINTS = {
    errno.EADDRINUSE: "Stop the process that uses the address, or choose another port ({settings}).",
    errno.EADDRNOTAVAIL: "No network interface of this machine has that address: 127.0.0.1 is this machine alone,"
    " 0.0.0.0 all of its interfaces.",
    errno.EACCES: "Ports below 1024 are for privileged processes: choose another one ({settings}).",
}
"""What to do if listening fails, by the error's number."""


async def _listen(web_server: HttpServer, host: str, port: int, settings: str) -> asyncio.Server:
    """Listen at an address; `settings` names what decides about it. Raises StartError."""
    try:
        return await listen(web_server, host, port)
    except OSError as error:
        text = f"cannot listen on {host}:{port}: {error.strerror or error}"
        hint = _LISTEN_HINTS.get(error.errno or 0, "Choose another address or port ({settings}).")
        raise StartError(f"{text}\n{hint.format(settings=settings)}") from None


async def _open_admin_listener(
    server: Server, gateway: Gateway, web_server: HttpServer, metrics: ExchangeMetrics, reloader: Reloader
) -> AdminListener:
    """Raises StartError."""
    from .admin import AdminListener, create_pages

    pages = create_pages(gateway, web_server, metrics, reloader.status)
    web = AdminListener(server, pages, gateway.page, gateway.log_defect)
    web.listener = await _listen(web.server, server.admin_host, server.admin_port or 0, "server.admin_port")
    return web


def _open_tracing(log: Log, opened: AsyncExitStack) -> Tracing:
    """Raises StartError."""
    try:
        from dragoman.proxy.telemetry.otel import OpenTelemetry
    except ImportError as error:
        raise StartError(f"server.tracing needs OpenTelemetry ({error}): {INSTALL}.") from None
    tracing = OpenTelemetry(log)
    opened.push_async_callback(asyncio.to_thread, tracing.close)
    return tracing


async def _open_store(config: Config, log: Log, usage: UsageWriter, opened: AsyncExitStack) -> ResponseStore | None:
    """The store of responses and usage. Raises StartError."""
    try:
        store = await open_store(config.store, partial(_report_store_error, log))
        if store is not None:
            opened.push_async_callback(store.close)
        opened.push_async_callback(usage.close)
        await usage.open(store)
        return store
    except StoreError as error:
        place = "XDG_STATE_HOME to a folder" if config.store.path is None else "store.path to a file"
        hint = f"Set {place} that can be written to, or set store.kind in the configuration to memory or none."
        raise StartError(f"{error}\n{hint}") from None


def _report_store_error(log: Log, error: StoreError) -> None:
    log.error("store", reason=error.reason, message=str(error))
