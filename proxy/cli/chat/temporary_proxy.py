"""A proxy in this process that runs during a conversation."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dragoman.proxy.cli.options import exit_with_error
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import StartError, start

__all__ = ["run_temporary_proxy"]


@contextmanager
def run_temporary_proxy(config: Config) -> Iterator[str]:
    """Run a proxy on a free port in a thread of its own, and yield its address. It stores no responses, logs nothing
    and asks for no key. Exits with status 2 if it cannot start."""
    server = replace(config.server, host="127.0.0.1", port=0, admin_port=None)
    store = replace(config.store, kind="none")
    private = replace(config, server=server, store=store, keys=[])
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="dragoman-proxy", daemon=True)
    thread.start()
    try:
        starting = start(private, log_level="critical", log_stream=io.BytesIO())
        proxy = asyncio.run_coroutine_threadsafe(starting, loop).result()
        try:
            yield proxy.url
        finally:
            loop.call_soon_threadsafe(proxy.stop_now.set)
            asyncio.run_coroutine_threadsafe(proxy.stop(), loop).result()
    except StartError as error:
        exit_with_error(str(error))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
