"""The fake provider behind a proxy under test: the suite scripts it, and reads the requests that it received."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from .fakes import FakeProvider
from .outcome import UpstreamRequest

__all__ = ["DEFAULT_BEHAVIOUR", "FakeUpstream"]

DEFAULT_BEHAVIOUR = "as-asked"
_DISCONNECT_TIMEOUT = 5.0
_REQUEST_TIMEOUT = 20.0


class FakeUpstream:
    """A fake provider of one dialect that listens on a port: `async with FakeUpstream("mindie", 9004)`.

    It closes the connection after each reply, so that a connection broken by one case does not fail the next one.
    `disconnect_timeout` is how many seconds the proxy has to close its requests after its client has left.
    """

    def __init__(
        self, dialect: str, port: int = 0, profile: str = "actual", *, disconnect_timeout: float = _DISCONNECT_TIMEOUT
    ) -> None:
        self.dialect, self.profile = dialect, profile
        self._disconnect_timeout = disconnect_timeout
        self._fake = FakeProvider(dialect, port=port, profile=profile, closing=True)

    @property
    def base_url(self) -> str:
        return self._fake.base_url

    @property
    def origin(self) -> str:
        return self._fake.origin

    async def load_script(self, script: Sequence[str]) -> None:
        """Forget earlier requests, and play these behaviours, one a request. The last behaviour serves all later
        requests, as a proxy may retry. Raises InvalidBehaviourError."""
        self._fake.requests.clear()
        self._fake.clear_script()
        self._fake.script(*script[:-1])
        self._fake.behaviour = script[-1] if script else DEFAULT_BEHAVIOUR

    def received_requests(self) -> Sequence[UpstreamRequest]:
        return [
            UpstreamRequest(
                request.method,
                request.path,
                request.query,
                {name.lower(): value for name, value in request.headers.items()},
                request.body,
            )
            for request in self._fake.requests
        ]

    async def wait_for_request(self) -> None:
        """Wait until a request arrives, at most 20 seconds."""
        with suppress(TimeoutError):
            await self._fake.until(lambda: bool(self._fake.requests), _REQUEST_TIMEOUT)

    async def wait_for_disconnects(self) -> bool:
        """Wait until the proxy has closed every request before the end of its reply. Return False at the timeout."""

        def all_closed() -> bool:
            return {request.number for request in self._fake.requests} <= self._fake.abandoned

        try:
            await self._fake.until(all_closed, self._disconnect_timeout)
        except TimeoutError:
            return False
        return True

    async def __aenter__(self) -> FakeUpstream:
        """Start listening. Raises OSError if the port is taken."""
        await self._fake.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._fake.stop()
