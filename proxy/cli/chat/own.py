"""A proxy in this process, for as long as somebody talks to it."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.proxy.cli.options import fail
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import CannotServe, start

__all__ = ["own_proxy"]


@contextmanager
def own_proxy(config: Config) -> Iterator[str]:
    """The address of a proxy on a free port, in a thread of its own. It keeps no responses and logs nothing. Ends the
    program with status 2 where it cannot start."""
    server = config.server.model_copy(update={"host": "127.0.0.1", "port": 0})
    store = config.store.model_copy(update={"kind": "none"})
    alone = config.model_copy(update={"server": server, "store": store, "keys": []})
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="dragoman-proxy", daemon=True)
    thread.start()
    try:
        starting = start(alone, log_level="critical", log_stream=io.BytesIO())
        running = asyncio.run_coroutine_threadsafe(starting, loop).result()
        try:
            yield running.url
        finally:
            loop.call_soon_threadsafe(running.stopping_now.set)
            asyncio.run_coroutine_threadsafe(running.stop(), loop).result()
    except CannotServe as error:
        fail(str(error))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
