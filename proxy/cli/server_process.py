"""The proxy as a process: it prints a greeting, serves, and drains when a signal arrives. Everything that it writes to
standard error is queued, so that nothing waits for whoever reads it.

Imported when `dragoman serve` runs, because it loads the whole proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from dragoman.proxy.config.document import ConfigText
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.values import format_seconds
from dragoman.proxy.http.heap import return_large_blocks
from dragoman.proxy.server.lifecycle import RunningProxy, start
from dragoman.proxy.server.open_files import raise_file_limit
from dragoman.proxy.server.page.access import is_open_page
from dragoman.proxy.server.reload import ConfigSource
from dragoman.proxy.server.serving_state import StartError
from dragoman.proxy.telemetry.line_writer import LineWriter, QueuedText
from dragoman.proxy.telemetry.log import render_drops
from dragoman.proxy.upstreams.factory import describe_engines

from .onboarding import describe_models, describe_store, suggest_first_requests
from .serve_apart import was_hung_up

__all__ = ["run"]

_T = TypeVar("_T")

_WARN_OF_FILES = (
    "warning: the system allows {} open files (ulimit -n), fewer than the {} connections of server.limits: further"
    " clients are disconnected without an answer"
)


def run(
    config: Config,
    *,
    insecure: bool = False,
    log_format: str = "json",
    log_level: str = "info",
    source: ConfigSource | None = None,
    files: Sequence[Path] = (),
    text: ConfigText | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; a second signal ends the waiting. At SIGHUP, `source` reads the configuration
    again; `files` are what it was read from, `text` is what the page shows of it. Returns the exit status: 0, or 2 if
    the proxy cannot start."""

    console = LineWriter(sys.stderr.fileno(), partial(render_drops, log_format))
    most_files = raise_file_limit()

    async def serve() -> int:
        try:
            proxy = await start(
                config,
                insecure=insecure,
                log_format=log_format,
                log_level=log_level,
                log_stream=console,
                delays_log=True,
                source=source,
                files=files,
                text=text,
            )
        except StartError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        first_signal = _listen_to_signals(proxy)
        _print_greeting(proxy)
        if most_files < (connections := config.server.limits.connections):
            print(_WARN_OF_FILES.format(most_files, connections), file=sys.stderr)
        if log_format == "json":
            proxy.log_engines()  # on a terminal the greeting names the engines
        gc.freeze()  # without gc.collect(): there are 60 000 objects to look at, and next to no garbage among them
        gc.set_threshold(50_000, 20, 100)
        return_large_blocks()
        await first_signal.wait()
        _print_stopping(proxy)
        await proxy.stop()
        return 0

    try:
        with contextlib.redirect_stderr(QueuedText(console)):
            return _run_in_fast_loop(serve)
    finally:
        console.close()


def _print_greeting(proxy: RunningProxy) -> None:
    url = proxy.local_url
    elsewhere = "" if url == proxy.url else "; elsewhere, this machine's name, and the port that a container publishes"
    for line in (
        f"dragoman listens on {proxy.url}",
        f"for OpenAI clients: base_url={url}/v1{elsewhere}",
        describe_models(proxy.config),
        describe_store(proxy.config.store),
        *_describe_page(proxy),
        *([] if proxy.admin is None else [f"metrics: {proxy.admin.url}/metrics"]),
        *describe_engines(proxy.upstreams),
        *suggest_first_requests(proxy.config, url),
    ):
        print(line, file=sys.stderr)


def _describe_page(proxy: RunningProxy) -> Iterator[str]:
    """Where the page is, if it can be served."""
    if is_open_page(proxy.config):
        yield f"page: {proxy.local_url}/"
    elif proxy.admin is not None:
        yield f"page: {proxy.admin.url}/"


def _print_stopping(proxy: RunningProxy) -> None:
    if count := proxy.request_count:
        longest = format_seconds(proxy.config.server.drain.timeout)
        text = f"stopping: {count} still running, for at most {longest}; a second signal ends them"
        print(text, file=sys.stderr)


def _listen_to_signals(proxy: RunningProxy) -> asyncio.Event:
    """An event that the first SIGTERM or SIGINT sets. The second one sets `stop_now`. SIGHUP reloads, also an
    earlier one."""
    first = asyncio.Event()

    def receive() -> None:
        (proxy.stop_now if first.is_set() else first).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, receive)
    loop.add_signal_handler(signal.SIGHUP, proxy.reloader.request, "SIGHUP")
    if was_hung_up():
        proxy.reloader.request("SIGHUP")
    return first


def _run_in_fast_loop(main: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run `main` in uvloop, or in asyncio's own event loop on a platform without uvloop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())
