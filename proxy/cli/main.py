"""The command line. Exit status: 0 success, 2 wrong usage or configuration, 130 interrupted.

The other modules of this folder contain the commands. Only the command that is called is loaded, and it imports what it
needs when it runs, so that `dragoman serve` starts fast.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

__all__ = ["app", "main"]

app: typer.Typer
"""The whole command line, made on first use."""


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .application import NAMES, make_app

    made = globals()["app"] = make_app(NAMES)
    return made


def main() -> None:
    """Run the command that `sys.argv` names, and exit with its status."""
    if sys.stderr is None:  # the parent process has closed it: nothing else may get its descriptor
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open until the end
    if os.environ.get("DRAGOMAN_PORT", "").startswith("tcp://"):
        del os.environ["DRAGOMAN_PORT"]  # Kubernetes sets it if a service is called dragoman
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # plugins would read the metadata of every package
    gc.set_threshold(500_000, 20, 100)  # imported modules stay in memory: no start makes so many objects
    if sys.argv[1:2] == ["serve"] and hasattr(os, "fork"):
        from .serve_apart import serve_apart

        try:
            sys.exit(serve_apart())
        except KeyboardInterrupt:
            sys.exit(130)
    from .application import NAMES, make_app

    called = [word for word in sys.argv[1:2] if word in NAMES]
    make_app(called or NAMES)(prog_name="dragoman")
