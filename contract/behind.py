"""The fake provider behind a proxy under test: the suite scripts it, and looks at what the proxy sent to it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from .fakes import FakeProvider
from .outcome import Received

__all__ = ["ORDINARY", "Fake"]

ORDINARY = "as-asked"
_PATIENCE = 5.0
_BEFORE_ASKING = 20.0


class Fake:
    """A fake of that dialect, listening on that port while the suite runs: `async with Fake("mindie", 9004)`.

    It closes the connection after each reply, so that what one case broke is not what the next one fails for.
    """

    def __init__(self, dialect: str, port: int = 0, profile: str = "actual") -> None:
        self.dialect, self.profile = dialect, profile
        self._fake = FakeProvider(dialect, port=port, profile=profile, closing=True)

    @property
    def base_url(self) -> str:
        return self._fake.base_url

    @property
    def origin(self) -> str:
        return self._fake.origin

    async def begin(self, script: Sequence[str]) -> None:
        """The last behaviour is for all requests that follow: a proxy may ask again. Raises Misuse where there is no
        such behaviour."""
        self._fake.requests.clear()
        self._fake.unscript()
        self._fake.script(*script[:-1])
        self._fake.behaviour = script[-1] if script else ORDINARY

    def received(self) -> Sequence[Received]:
        return [
            Received(
                request.method,
                request.path,
                request.query,
                {name.lower(): value for name, value in request.headers.items()},
                request.body,
            )
            for request in self._fake.requests
        ]

    async def asked(self) -> None:
        """Wait until there is a request, twenty seconds at most."""
        with suppress(TimeoutError):
            await self._fake.until(lambda: bool(self._fake.requests), _BEFORE_ASKING)

    async def left(self) -> bool:
        """Whether everyone who asked leaves before the end of the reply, now or in five seconds' time."""
        try:
            await self._fake.until(lambda: {each.number for each in self._fake.requests} <= self._fake.left, _PATIENCE)
        except TimeoutError:
            return False
        return True

    async def __aenter__(self) -> Fake:
        """Raises OSError where the port is taken."""
        await self._fake.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._fake.stop()
