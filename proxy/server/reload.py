"""Reading the configuration again while the proxy runs.

    server.reload   it is read again
    -------------   ------------------------------------------------------------
    signal          at SIGHUP
    watch           at SIGHUP, and when one of its files has changed and stays as it is for half a second
    off             never

It is checked as `dragoman check` does, its engines are started, and then it replaces the current one as a whole. If any
of that fails, nothing changes; the log, /health of the admin listener and the metrics say why. Reloads follow one
another: signals that come during one lead to one more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from dragoman.adapters.call import JsonObject
from dragoman.proxy.config.checked_config import CheckedConfig
from dragoman.proxy.config.difference import keep_fixed_settings, list_changes
from dragoman.proxy.config.document import ConfigText
from dragoman.proxy.config.keyfile import FileStamp, read_stamp
from dragoman.proxy.config.models import Config, Provider
from dragoman.proxy.config.problems import ConfigErrors, Problem
from dragoman.proxy.telemetry.log import Log
from dragoman.proxy.telemetry.mask import collect_secrets
from dragoman.proxy.telemetry.metrics import ExchangeMetrics
from dragoman.proxy.upstreams.factory import log_engines

from .serving_state import ServingState, ServingStates, StartError, StateBuilder

__all__ = ["ConfigSource", "ReloadStatus", "Reloader"]

ConfigSource: TypeAlias = Callable[[], CheckedConfig]
"""Reads the configuration as at the start, in a thread. Raises ConfigErrors."""

_TICK = 0.25  # seconds between two looks at the files, and half of how long they have to stay as they are
_MOST_SHOWN = 50  # changes, or problems, in the log
_CONNECT = 5.0  # seconds to reach a provider
_PORTS = {"http": 80, "https": 443}

_Stamps: TypeAlias = dict[Path, FileStamp | None]


@dataclass(slots=True)
class ReloadStatus:
    """How the last reload ended, or the start. `problem` is "" if it succeeded; times are in seconds since 1970."""

    tried_at: float
    succeeded_at: float
    problem: str = ""

    def to_json(self) -> JsonObject:
        """As /health of the admin listener shows it."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.tried_at))
        shown = {"outcome": "failed" if self.problem else "ok", "at": stamp}
        return {**shown, "problem": self.problem} if self.problem else shown


class Reloader:
    """Reloads the configuration of one proxy. `text` is the file of the current one, if it is from a file. `observers`
    are called with each new one, at the moment in which it begins to serve. Call `start` first and `close` last."""

    def __init__(
        self,
        source: ConfigSource | None,
        builder: StateBuilder,
        states: ServingStates[Any],
        log: Log,
        metrics: ExchangeMetrics | None,
    ) -> None:
        self.status = ReloadStatus(now := time.time(), now)
        self.text: ConfigText | None = None
        self.observers: list[Callable[[Config], None]] = []
        self._source = source
        self._builder = builder
        self._states = states
        self._log = log
        self._metrics = metrics
        self._lock = asyncio.Lock()
        self._files: Sequence[Path] = ()
        self._wanted = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, files: Sequence[Path] = ()) -> None:
        """Begin to wait for requests, and to watch the files if the configuration says so."""
        self._files = files
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._serve_requests()), loop.create_task(self._watch())]

    async def close(self) -> None:
        """Begin nothing more. A reload that runs is given up."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def request(self, signal: str) -> None:
        """Reload as soon as possible, if the configuration allows it."""
        if self._source is None:
            why = "there is no configuration file to read again; restart dragoman to apply changes"
        elif self._states.current.config.server.reload == "off":
            why = "server.reload is off; restart dragoman to apply changes"
        else:
            self._wanted.set()
            return
        self._log.warning("signal_ignored", signal=signal, message=why)

    async def reload(self, cause: str) -> bool:
        """Read the configuration and serve with it. False if it cannot be used; then nothing has changed."""
        assert self._source is not None
        async with self._lock:
            self.status.tried_at = time.time()
            try:
                checked = await asyncio.to_thread(self._source)
                self._files = checked.files
                await self._apply(checked, cause)
            except ConfigErrors as error:
                self._files = list(dict.fromkeys((*self._files, *error.files)))  # one that is missing may come later
                self._fail(cause, [_describe(problem) for problem in error.problems if problem.severity == "error"])
                self._warn(problem for problem in error.problems if problem.severity == "warning")
            except StartError as error:
                self._fail(cause, [str(error)])
            except Exception as error:  # noqa: BLE001 - the proxy goes on with what it has
                self._fail(cause, ["something went wrong in the proxy"])
                self._log.error("defect", exc_info=error)
            else:
                return True
            return False

    async def _apply(self, checked: CheckedConfig, cause: str) -> None:
        """Replace the current state. Raises StartError."""
        started = time.perf_counter()
        old = self._states.current
        config, fixed = keep_fixed_settings(old.config, checked.config)
        self._states.expect_secrets(collect_secrets(config))
        new = await self._builder.build(config, old)
        self._states.replace_current(new)
        self.text = checked.text
        for observe in self.observers:
            observe(config)
        self.status.problem, self.status.succeeded_at = "", time.time()
        self._count("ok")
        took = round(time.perf_counter() - started, 3)
        changes = await asyncio.to_thread(list_changes, old.config, config)
        self._log.info("reloaded", cause=cause, seconds=took, configuration=new.digest, **_cut("changes", changes))
        if fixed:
            text = "these settings stay as they are until a restart"
            self._log.warning("needs_restart", settings=fixed, message=text)
        self._warn(checked.warnings)
        self._look_at_providers(old, new)

    def _fail(self, cause: str, problems: Sequence[str]) -> None:
        """Keep the old state, and say why."""
        self._states.expect_secrets()
        self.status.problem = problems[0]
        self._count("failed")
        text = "the configuration stays as it was"
        self._log.error("reload_failed", cause=cause, message=text, **_cut("problems", problems))

    def _warn(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self._log.warning("configuration", message=_describe(problem))

    def _count(self, outcome: str) -> None:
        if self._metrics is not None:
            self._metrics.reloads.add((outcome,))

    def _look_at_providers(self, old: ServingState, new: ServingState) -> None:
        """Log which engines are new, and try to connect to the providers that are."""
        before = set(old.router.upstreams)
        names = [one.name for one in new.router.providers if one.upstream not in before]
        log_engines([one.upstream for one in new.router.providers if one.name in names], self._log)
        providers = [(name, new.config.providers[name]) for name in names if not new.config.providers[name].engine]
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks += [asyncio.create_task(self._try_to_connect(*one)) for one in providers]

    async def _try_to_connect(self, name: str, provider: Provider) -> None:
        """Warn if a provider cannot be reached."""
        address = urlsplit(provider.base_address if provider.proxy is None else provider.proxy.get_secret_value())
        try:
            async with asyncio.timeout(_CONNECT):
                _, writer = await asyncio.open_connection(address.hostname, address.port or _PORTS[address.scheme])
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        except OSError as error:  # TimeoutError included
            reason = str(error) or f"no connection within {_CONNECT:g} s"
            self._log.warning("provider_unreachable", provider=name, reason=reason)

    async def _serve_requests(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self.reload("SIGHUP")

    async def _watch(self) -> None:
        """Reload when a file has changed. A file that is being written is left alone until it stays as it is."""
        known: _Stamps = {}
        while True:
            await asyncio.sleep(_TICK)
            if self._source is None or self._states.current.config.server.reload != "watch":
                known = {}
                continue
            found = await asyncio.to_thread(_read_stamps, self._files)
            changed = [path for path, stamp in found.items() if self._has_changed(path, stamp, known)]
            if not changed:
                known = found
                continue
            await asyncio.sleep(2 * _TICK)
            if await asyncio.to_thread(_read_stamps, self._files) == found:
                known = found
                await self.reload(f"{changed[0].name} changed")

    def _has_changed(self, path: Path, stamp: FileStamp | None, known: _Stamps) -> bool:
        """Whether the file has another stamp than before; one that is new here, whether it was written since the
        configuration that names it was read."""
        if path in known:
            return known[path] != stamp
        return stamp is not None and stamp[3] > self.status.tried_at * 1e9


def _read_stamps(files: Iterable[Path]) -> _Stamps:
    return {file: _read_stamp(file) for file in files}


def _read_stamp(file: Path) -> FileStamp | None:
    try:
        return read_stamp(file)
    except OSError:
        return None


def _describe(problem: Problem) -> str:
    """One line: where it is, what it is, and what to do."""
    text = ": ".join(part for part in (problem.location, problem.where, problem.message) if part)
    return f"{text} ({problem.hint})" if problem.hint else text


def _cut(name: str, texts: Sequence[str]) -> dict[str, Any]:
    """The beginning of a list as a field of the log, and how long it is if that is not all."""
    shown: dict[str, Any] = {name: list(texts[:_MOST_SHOWN])}
    return {**shown, f"all_{name}": len(texts)} if len(texts) > _MOST_SHOWN else shown
