"""The command line of an engine process: one model folder, served on a Unix socket (`unix_server.py`).

Exit status: 0 stopped; 2 the model cannot be served, with the reason on standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from dragoman.local_engine.engine import EngineOptions
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.runtime.providers import Device, ProviderError

from .interface import LoadService, ServiceSettings
from .loader import load_service
from .server import EngineServer
from .unix_server import run_in_fast_loop, serve_on_socket

__all__ = ["main", "run"]


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
    server = EngineServer()

    async def load_model() -> None:
        server.service = await load(settings)

    async def close_model() -> None:
        if server.service is not None:
            await asyncio.to_thread(server.service.close)

    async def serve() -> None:
        await serve_on_socket(server.create_application(), path, load_model, close_model, attached=attached)

    run_in_fast_loop(serve)
    return 0


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
