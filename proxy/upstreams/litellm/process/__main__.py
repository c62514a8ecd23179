"""`python -m dragoman.proxy.upstreams.litellm.process --socket PATH`: litellm on a Unix socket.

Exit status: 0 stopped, 2 litellm cannot be loaded or the socket not be bound, with the reason on standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dragoman.local_engine.process.unix_server import run_in_fast_loop, serve_on_socket

from .server import LitellmServer

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    given = _create_parser().parse_args(arguments)
    server = LitellmServer()

    async def serve() -> None:
        await serve_on_socket(server.application(), given.socket, server.load, server.close, attached=given.attached)

    try:
        run_in_fast_loop(serve)
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {given.socket}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "dragoman.proxy.upstreams.litellm.process", description="Serve litellm on a socket."
    )
    parser.add_argument("--socket", type=Path, required=True, help="the path of the Unix socket to listen on")
    parser.add_argument("--attached", action="store_true", help="stop when standard input ends")
    return parser


if __name__ == "__main__":
    sys.exit(main())
