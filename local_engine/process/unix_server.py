"""The life of a server on a Unix socket that another process starts and supervises.

start     bind the socket, for this user alone, and answer while `load` runs
    serve     until SIGTERM or SIGINT or, if attached, until standard input ends, as it does when the parent has ended
stop      `close`, then end the connections; a process that is still here ten seconds after its parent ended exits
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from aiohttp import web

__all__ = ["run_in_fast_loop", "serve_on_socket"]

_GRACE = 10.0  # seconds


async def serve_on_socket(
    application: web.Application,
    path: Path,
    load: Callable[[], Coroutine[Any, Any, None]],
    close: Callable[[], Awaitable[None]],
    *,
    attached: bool,
) -> None:
    """Serve until SIGTERM or SIGINT, or until the parent ends if `attached`. Raises OSError, and what `load` raises."""
    stop = _watch_for_stop(attached)
    runner = web.AppRunner(application, handler_cancellation=True, access_log=None)
    await runner.setup()
    loading = asyncio.ensure_future(load())
    try:
        await web.SockSite(runner, _bind_socket(path), backlog=1024).start()
        if await _is_loaded_before(stop, loading):
            loading.result()
            await stop.wait()
    finally:
        await close()
        await runner.shutdown()
        await runner.cleanup()


def run_in_fast_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run in uvloop, or in asyncio's own loop on platforms without it."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


async def _is_loaded_before(stop: asyncio.Event, loading: asyncio.Future[None]) -> bool:
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((loading, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    return loading.done()


def _bind_socket(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def _watch_for_stop(attached: bool) -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if attached:
        threading.Thread(target=_end_with_parent, name="dragoman-parent", daemon=True).start()
    return stop


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(1)
