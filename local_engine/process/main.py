"""The life of an engine process.

    start     bind the socket, for this user alone; /health answers while the model is loaded in a thread
    serve     until SIGTERM or SIGINT, or, with --attached, until standard input ends: whoever started us is gone
    stop      what runs ends as failed; whoever is still here ten seconds later is ended

Exit status: 0 stopped, 2 the model cannot be served, with the reason on standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, get_args

from aiohttp import web

from dragoman.local_engine.engine import Options
from dragoman.local_engine.places import FolderError
from dragoman.local_engine.providers import Device, ProviderError

from .hub import Hub, Load, Settings
from .loading import load
from .server import EngineServer

__all__ = ["main", "run"]

_GRACE = 10.0


def main(arguments: Sequence[str] | None = None, load: Load = load) -> int:
    given = _parser().parse_args(arguments)
    options = Options(
        device=given.device,
        index=given.index,
        threads=given.threads,
        slots=given.slots,
        queue=given.queue,
        context=given.context,
    )
    settings = Settings(given.model_dir, given.name, options)
    try:
        return run(settings, given.socket, load, attached=given.attached)
    except (FolderError, ProviderError) as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: {given.socket}: {error.strerror or error}", file=sys.stderr)
    return 2


def run(settings: Settings, path: Path, load: Load, *, attached: bool = False) -> int:
    """Serve until told to stop. Raises FolderError, ProviderError and OSError."""

    async def serve() -> int:
        stop = _stop_event(attached)
        server = EngineServer()
        runner = web.AppRunner(server.application(), handler_cancellation=True, access_log=None)
        await runner.setup()
        loading = asyncio.ensure_future(load(settings))
        try:
            await web.SockSite(runner, _bound(path), backlog=1024).start()
            if await _first(loading, stop):
                server.hub = loading.result()
                await stop.wait()
        finally:
            await _closed(runner, server.hub)
        return 0

    return _in_fast_loop(serve)


async def _first(loading: asyncio.Future[Hub], stop: asyncio.Event) -> bool:
    """Whether the model is there before the signal to stop."""
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((loading, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    return loading.done()


async def _closed(runner: web.AppRunner, hub: Hub | None) -> None:
    if hub is not None:
        await asyncio.to_thread(hub.close)
    await runner.shutdown()
    await runner.cleanup()


def _bound(path: Path) -> socket.socket:
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


def _in_fast_loop(main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    try:
        import uvloop
    except ImportError:  # there is none for this platform
        return asyncio.run(main())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def _stop_event(attached: bool) -> asyncio.Event:
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


def _parser() -> argparse.ArgumentParser:
    default = Options()
    parser = argparse.ArgumentParser("dragoman.local_engine.serve", description="Serve a model folder on a socket.")
    parser.add_argument("--socket", type=Path, required=True, help="the path of the Unix socket to listen on")
    parser.add_argument("--model-dir", type=Path, required=True, help="a model folder, or an .onnx file in one")
    parser.add_argument("--name", help="the model's name; default: its own")
    parser.add_argument("--device", choices=get_args(Device), default="auto")
    parser.add_argument("--index", type=int, default=0, help="which of several devices")
    parser.add_argument("--threads", type=int, default=0, help="0: one per core")
    parser.add_argument("--slots", type=int, default=default.slots, help="sequences that run at once")
    parser.add_argument("--queue", type=int, default=default.queue, help="sequences that wait")
    parser.add_argument("--context", type=int, help="the longest text, in tokens")
    parser.add_argument("--attached", action="store_true", help="stop when standard input ends")
    return parser
