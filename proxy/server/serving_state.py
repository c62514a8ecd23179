"""What one configuration decides, as one object: a request keeps the one that it began with.

A new configuration makes a new object, which replaces the current one at once and as a whole. The replaced one serves
the requests that began with it. After the last of them it is closed: the connections and engines that no other state
uses end, and its secrets are no longer masked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from random import Random
from typing import Generic, TypeVar

import orjson

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.routes import RouteTable
from dragoman.proxy.config.keyfile import BadKeyFile
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.urls import is_loopback
from dragoman.proxy.http.browser_rules import BrowserRules
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.telemetry.log import Log
from dragoman.proxy.telemetry.mask import Mask, collect_secrets
from dragoman.proxy.telemetry.usage_ledger import UsageLedger
from dragoman.proxy.upstreams.credentials import CredentialObserver
from dragoman.proxy.upstreams.factory import start_engines
from dragoman.proxy.upstreams.interface import Upstream
from dragoman.proxy.upstreams.supervision.supervisor import EngineError

__all__ = ["ServingState", "ServingStates", "StartError", "StateBuilder"]

_BATCH = 16  # models that are planned before others run

_Request = TypeVar("_Request")


class StartError(Exception):
    """The proxy cannot serve a configuration; the text says why, and what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class ServingState:
    """Everything that the configuration decides about a request. `digest` identifies the configuration, without its
    secrets."""

    config: Config
    router: RouterState
    routes: RouteTable
    browser_rules: BrowserRules
    digest: str
    secrets: tuple[str, ...]


class StateBuilder:
    """Builds the states of one proxy. `insecure` allows listening on any address without keys."""

    def __init__(
        self,
        dialects: Mapping[str, Dialect],
        log: Log,
        mask: Mask,
        ledger: UsageLedger,
        random: Random | None,
        *,
        insecure: bool,
    ) -> None:
        self._dialects = dialects
        self._log = log
        self._random = random
        self._ledger = ledger
        self._observer = CredentialObserver(mask.add_secret, log.warning)
        self._insecure = insecure

    async def build(self, config: Config, previous: ServingState | None = None) -> ServingState:
        """The state for a configuration, with its engines started. It shares with the previous one the connections and
        engines that stay as they are. Raises StartError; then nothing of it is left."""
        _refuse_exposure(config, self._insecure)
        if previous is not None:
            _refuse_loss_of_keys(previous.config, config)
        router = self._create_router(config, None if previous is None else previous.router)
        try:
            for number, (name, model) in enumerate(config.models.items(), 1):
                router.add_model(config, name, model)
                if number % _BATCH == 0:
                    await asyncio.sleep(0)
            await start_engines(router.routed_upstreams, self._log)
        except BaseException as error:
            await router.close(keep=[] if previous is None else previous.router.upstreams)
            if isinstance(error, EngineError):
                raise StartError(str(error)) from None
            raise
        return ServingState(
            config,
            router,
            RouteTable(self._dialects, config.server.profiles),
            BrowserRules(config.server, has_keys=bool(config.keys)),
            sha256(orjson.dumps(config, default=str)).hexdigest()[:12],
            tuple(collect_secrets(config)),
        )

    def _create_router(self, config: Config, previous: RouterState | None) -> RouterState:
        """The state without models."""
        try:
            return RouterState(
                replace(config, models={}),
                self._dialects,
                self._random,
                observer=self._observer,
                previous=previous,
                ledger=self._ledger,
            )
        except OSError as error:  # ssl.SSLError included
            raise StartError(f"a provider's TLS files or key file cannot be read: {error}") from None
        except BadKeyFile as error:
            raise StartError(f"a provider's key file contains no key: {error}") from None


class ServingStates(Generic[_Request]):
    """The `current` state, and the earlier ones that some requests still use. `running` are the requests that are being
    served, each with its state."""

    def __init__(self, first: ServingState, mask: Mask) -> None:
        self.current = first
        self.running: dict[_Request, ServingState] = {}
        self._holders: dict[object, ServingState] = {}
        self._earlier: dict[ServingState, int] = {}
        self._expected: tuple[str, ...] = ()
        self._mask = mask
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def earlier_count(self) -> int:
        """How many earlier states still serve requests."""
        return len(self._earlier)

    def replace_current(self, new: ServingState) -> None:
        """Serve new requests with another state."""
        old, self.current = self.current, new
        self._expected = ()
        count = sum(state is old for state in chain(self.running.values(), self._holders.values()))
        self._earlier[old] = count
        self._update_mask()
        if not count:
            self._retire(old)

    @contextmanager
    def hold(self, state: ServingState) -> Iterator[None]:
        """Use a state for a while, for what is not one of `running`."""
        holder = object()
        self._holders[holder] = state
        try:
            yield
        finally:
            del self._holders[holder]
            if state is not self.current:
                self.leave(state)

    def leave(self, state: ServingState) -> None:
        """A request that began with an earlier state has ended."""
        self._earlier[state] -= 1
        if not self._earlier[state]:
            self._retire(state)

    async def close(self) -> None:
        """Close all states, after the last request."""
        if self._closing:
            await asyncio.wait(self._closing)
        for state in self._earlier:
            await state.router.close(keep=self.current.router.upstreams)
        await self.current.router.close()

    def _retire(self, state: ServingState) -> None:
        del self._earlier[state]
        self._update_mask()
        task = asyncio.get_running_loop().create_task(state.router.close(keep=self._list_upstreams()))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _list_upstreams(self) -> Collection[Upstream]:
        return {upstream for state in (self.current, *self._earlier) for upstream in state.router.upstreams}

    def expect_secrets(self, secrets: Iterable[str] = ()) -> None:
        """Mask these too, which are those of a state that is being built, until there is a new current state."""
        self._expected = tuple(secrets)
        self._update_mask()

    def _update_mask(self) -> None:
        """Mask the secrets of all states, because requests of earlier ones still write to the log."""
        states = (*self._earlier, self.current)
        self._mask.set_secrets(dict.fromkeys(chain(*(state.secrets for state in states), self._expected)))


def _refuse_loss_of_keys(old: Config, new: Config) -> None:
    """Raises StartError for a configuration that needs no key any more: its file may be written in part, and a server
    in front of the proxy may let strangers in."""
    lost = "keys" if old.keys and not new.keys else ""
    if old.server.admin_key is not None and new.server.admin_key is None:
        lost = lost or "server.admin_key"
    if lost:
        raise StartError(f"{lost}: the running proxy has it, and the new configuration does not; restart to remove it.")


def _refuse_exposure(config: Config, insecure: bool) -> None:
    """Raises StartError for a listener that strangers could use."""
    server = config.server
    if not (config.keys or insecure or is_loopback(server.host)):
        raise StartError(
            f"refusing to listen on {server.host} without keys: anyone who reaches it could use your providers.\n"
            "Add `keys:` to the configuration, listen on 127.0.0.1, or pass --insecure."
        )
    if server.admin_port is not None and server.admin_key is None and not is_loopback(server.admin_host):
        raise StartError(
            f"refusing to listen on {server.admin_host} for metrics without a key.\n"
            "Set server.admin_key, or let server.admin_host be 127.0.0.1."
        )
