"""The fake provider behind a proxy under test: the suite scripts it, and looks at what the proxy sent to it."""

from __future__ import annotations

from collections.abc import Sequence

from .fakes import FakeProvider
from .outcome import Received

__all__ = ["Fake"]


class Fake:
    """A fake of that dialect, listening on that port while the suite runs: `async with Fake("mindie", 9004)`."""

    def __init__(self, dialect: str, port: int = 0, profile: str = "actual") -> None:
        self.dialect, self.profile = dialect, profile
        self._fake = FakeProvider(dialect, port=port, profile=profile)

    @property
    def base_url(self) -> str:
        return self._fake.base_url

    async def begin(self, script: Sequence[str]) -> None:
        """Raises Misuse where there is no such behaviour."""
        self._fake.requests.clear()
        self._fake.unscript()
        self._fake.script(*script)

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

    async def __aenter__(self) -> Fake:
        """Raises OSError where the port is taken."""
        await self._fake.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._fake.stop()
