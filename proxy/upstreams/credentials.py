"""Credentials for calls of a provider: a key that never changes, or the key in a file that may change.

Tokens of a token endpoint are in `oauth.py`. All have the same interface: `header_lines` returns the current header
lines, and a call waits only if there are none yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol

from dragoman.proxy.config.keyfile import BadKeyFile, FileStamp, read_key, read_stamp

__all__ = [
    "NO_CREDENTIALS",
    "NO_OBSERVER",
    "CredentialObserver",
    "Credentials",
    "FixedKey",
    "KeyFile",
    "render_headers",
]

_CHECK_AFTER = 1.0  # seconds between two checks of a key file


class Credentials(Protocol):
    templates: Mapping[str, str]
    """Header name -> template for the secret."""

    def header_lines(self) -> bytes | None:
        """The current header lines, each with its line end; None if `fetch_header_lines` has to be awaited."""

    async def fetch_header_lines(self) -> bytes:
        """Wait for header lines. Raises Fault."""

    async def replace_header_lines(self, refused: bytes) -> bytes | None:
        """Get other header lines after the upstream has refused these; None if there are no others."""

    async def close(self) -> None:
        """Stop renewing them."""


class CredentialObserver(NamedTuple):
    """Callbacks of credentials. `add_secret(owner, secret)` is called with each secret that has to be masked,
    `warn(event, **fields)` with events that the operator should see in the log."""

    add_secret: Callable[[str, str], None]
    warn: Callable[..., Any]


NO_OBSERVER = CredentialObserver(lambda owner, secret: None, lambda event, **fields: None)


def render_headers(templates: Mapping[str, str], secret: str) -> bytes:
    return "".join(f"{name}: {template.format(secret)}\r\n" for name, template in templates.items()).encode()


class FixedKey:
    """A key that never changes."""

    def __init__(self, templates: Mapping[str, str], key: str) -> None:
        self.templates = templates
        self._lines = render_headers(templates, key)

    def header_lines(self) -> bytes:
        return self._lines

    async def fetch_header_lines(self) -> bytes:
        return self._lines

    async def replace_header_lines(self, refused: bytes) -> None:
        return None

    async def close(self) -> None:
        pass


NO_CREDENTIALS = FixedKey({}, "")
"""For providers without authentication."""


class KeyFile:
    """The key in a file, read again when the file has changed.

    A call more than a second after the last check starts the next one in another thread, and meanwhile uses the known
    key. If the upstream refuses that key, the call waits for a check. If the file is gone, or contains no key, the
    known key stays, and a warning is logged. Raises OSError or BadKeyFile if there is no key at the start.
    """

    def __init__(
        self, owner: str, templates: Mapping[str, str], path: Path, observer: CredentialObserver = NO_OBSERVER
    ) -> None:
        self.templates = templates
        self._owner = owner
        self._path = path
        self._observer = observer
        self._stamp: FileStamp | None = None
        self._task: asyncio.Task[None] | None = None
        self._last_warning = ""
        self._store(*_read_changed(path, None))

    def header_lines(self) -> bytes:
        if monotonic() >= self._next and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._check_file())
        return self._lines

    async def fetch_header_lines(self) -> bytes:
        return self._lines

    async def replace_header_lines(self, refused: bytes) -> bytes | None:
        for _ in range(2):  # a check that runs already may have read the file before it changed
            if self._lines != refused:
                break
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._check_file())
            await asyncio.wait((self._task,))
        return None if self._lines == refused else self._lines

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _check_file(self) -> None:
        try:
            self._store(*await asyncio.to_thread(_read_changed, self._path, self._stamp))
            self._last_warning = ""
        except (OSError, BadKeyFile) as error:
            self._next = monotonic() + _CHECK_AFTER
            self._warn_once(error.strerror or "unreadable" if isinstance(error, OSError) else str(error))
        finally:
            self._task = None

    def _store(self, stamp: FileStamp, key: str | None) -> None:
        self._next = monotonic() + _CHECK_AFTER
        self._stamp = stamp
        if key is not None:
            self._observer.add_secret(self._owner, key)
            self._lines = render_headers(self.templates, key)

    def _warn_once(self, reason: str) -> None:
        if reason != self._last_warning:
            self._last_warning = reason
            self._observer.warn("key_file", provider=self._owner, reason=reason, instead="the last key is kept")


def _read_changed(path: Path, known: FileStamp | None) -> tuple[FileStamp, str | None]:
    """The file's stamp, and the key if the stamp is not the known one."""
    stamp = read_stamp(path)
    return stamp, None if stamp == known else read_key(path)
