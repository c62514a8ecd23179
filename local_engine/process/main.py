"""The main program of an engine process.

    start     bind the socket, for this user only; /health answers while a thread loads the model
    serve     until SIGTERM or SIGINT; with --attached, also until standard input ends, when the parent process is gone
    stop      fail all requests; with --attached, exit after ten seconds at the latest

Exit status: 0 stopped; 2 the model cannot be served, with the reason on standard error.
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

from dragoman.local_engine.engine import EngineOptions
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.runtime.providers import Device, ProviderError

from .interface import LoadService, ModelService, ServiceSettings
from .loader import load_service
from .server import EngineServer

__all__ = ["main", "run"]

_STOP_TIMEOUT = 10.0


def main(arguments: Sequence[str] | None = None, load: LoadService = load_service) -> int:
    """Parse the command line and serve; return the exit status."""
    given = _create_parser().parse_args(arguments)
    options = EngineOptions(
        device=given.device,
        index=given.index,
        threads=given.threads,
        slots=given.slots,
        queue=given.queue,
        context=given.context,
    )
    settings = ServiceSettings(given.model_dir, given.name, options)
    try:
        return run(settings, given.socket, load, attached=given.attached)
    except (FolderError, ProviderError) as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: {given.socket}: {error.strerror or error}", file=sys.stderr)
    return 2


def run(settings: ServiceSettings, path: Path, load: LoadService, *, attached: bool = False) -> int:
    """Serve until a signal, or the end of standard input if `attached`. Raises FolderError, ProviderError, OSError."""

    async def serve() -> int:
        stop = _create_stop_event(attached)
        server = EngineServer()
        runner = web.AppRunner(server.create_application(), handler_cancellation=True, access_log=None)
        await runner.setup()
        loading = asyncio.ensure_future(load(settings))
        try:
            await web.SockSite(runner, _bind(path), backlog=1024).start()
            if await _wait_for_model(loading, stop):
                server.service = loading.result()
                await stop.wait()
        finally:
            await _close(runner, server.service)
        return 0

    return _run_with_uvloop(serve)


async def _wait_for_model(loading: asyncio.Future[ModelService], stop: asyncio.Event) -> bool:
    """Wait for the model or the stop event; return whether the model is loaded."""
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((loading, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    return loading.done()


async def _close(runner: web.AppRunner, service: ModelService | None) -> None:
    if service is not None:
        await asyncio.to_thread(service.close)
    await runner.shutdown()
    await runner.cleanup()


def _bind(path: Path) -> socket.socket:
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


def _run_with_uvloop(main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    try:
        import uvloop
    except ImportError:  # not available for this platform
        return asyncio.run(main())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def _create_stop_event(attached: bool) -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if attached:
        threading.Thread(target=_stop_with_parent, name="dragoman-parent", daemon=True).start()
    return stop


def _stop_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_TIMEOUT)
    os._exit(1)


def _create_parser() -> argparse.ArgumentParser:
    default = EngineOptions()
    parser = argparse.ArgumentParser("dragoman.local_engine.serve", description="Serve a model folder on a socket.")
    parser.add_argument("--socket", type=Path, required=True, help="the path of the Unix socket to listen on")
    parser.add_argument("--model-dir", type=Path, required=True, help="a model folder, or an .onnx file in one")
    parser.add_argument("--name", help="the model's public name; default: its own")
    parser.add_argument("--device", choices=get_args(Device), default="auto")
    parser.add_argument("--index", type=int, default=0, help="which of several CUDA devices")
    parser.add_argument("--threads", type=int, default=0, help="0: one per core")
    parser.add_argument("--slots", type=int, default=default.slots, help="sequences that run at once")
    parser.add_argument("--queue", type=int, default=default.queue, help="sequences that wait")
    parser.add_argument("--context", type=int, help="the context length, in tokens")
    parser.add_argument("--attached", action="store_true", help="stop when standard input ends")
    return parser
