"""`dragoman serve` as two processes. One reads the command line and the configuration, and ends; the other one imports
the server, meanwhile if there is a core for it, and serves. So the libraries that only reading needs take no memory
while the proxy runs, and the start takes as long as the slower of the two.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

__all__ = ["import_server", "serve_apart", "was_hung_up"]

_SHARED = ("dragoman.proxy.config.checked_config", "dragoman.proxy.cli.configuration_source")
"""The modules that both processes need: they are imported before the fork."""

_hangups: list[int] = []
"""SIGHUP as often as it came before anyone listened: by default it would end the process."""


def serve_apart() -> int:
    """Run the command `serve` of `sys.argv`. Returns the exit status. No thread may run."""
    signal.signal(signal.SIGHUP, lambda number, _: _hangups.append(number))
    for name in _SHARED:
        import_module(name)
    read_end, write_end = os.pipe()
    reader = os.fork()
    if reader == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.close(read_end)
        _read(write_end)
    os.close(write_end)
    try:
        if _has_several_cores():
            import_server()
        with open(read_end, "rb") as pipe:
            sent = pipe.read()
    except BaseException:  # KeyboardInterrupt above all
        os.kill(reader, signal.SIGTERM)
        raise
    status = os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1])
    if status < 0:
        print(f"error: signal {-status} ended the process that reads the configuration", file=sys.stderr)
        return 2
    return import_server()(**pickle.loads(sent)) if sent and not status else status


def was_hung_up() -> bool:
    """Whether SIGHUP came while the proxy started: what it has read may be out of date."""
    return bool(_hangups)


def _has_several_cores() -> bool:
    """Whether two processes can run at once. On one core each would only wait for the other, and for its caches."""
    return not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) > 1


def import_server() -> Callable[..., int]:
    """What runs the server. No file with certificate authorities is read before a provider needs them."""
    from dragoman.proxy.http.authorities import defer_authorities

    with defer_authorities():
        from .server_process import run
    return run


def _read(pipe: int) -> NoReturn:
    """Run the command in the other process, which sends what it would serve, and ends."""
    from .application import make_app

    def send(arguments: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError), open(pipe, "wb") as stream:  # the process that serves has been ended
            pickle.dump(arguments, stream)

    status = 1
    try:
        make_app(["serve"])(prog_name="dragoman", obj=send)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - it ends as an interpreter does
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with suppress(OSError):  # a full disk, or nobody reads
                    stream.flush()
        os._exit(status)
