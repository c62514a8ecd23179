"""The command line of an engine process: one model folder, served on a Unix socket (`unix_server.py`).

Exit status: 0 stopped, 2 the model cannot be served, with the reason on standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from dragoman.local_engine.engine import Options
from dragoman.local_engine.places import FolderError
from dragoman.local_engine.providers import Device, ProviderError

from .hub import Load, Settings
from .loading import load
from .server import EngineServer
from .unix_server import run_in_fast_loop, serve_on_socket

__all__ = ["main", "run"]


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
    server = EngineServer()

    async def load_hub() -> None:
        server.hub = await load(settings)

    async def close_hub() -> None:
        if server.hub is not None:
            await asyncio.to_thread(server.hub.close)

    async def serve() -> None:
        await serve_on_socket(server.application(), path, load_hub, close_hub, attached=attached)

    run_in_fast_loop(serve)
    return 0


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
