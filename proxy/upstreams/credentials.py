"""What a call to a provider carries to prove who asks: a key that stays, or one that a file may change at any time.

Tokens that a token endpoint gives out are in `oauth.py`. All of them are the same to the caller: `lines` are the header
lines as of now, and nothing waits for them where there are any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol

from dragoman.proxy.config.keyfile import BadKeyFile, FileStamp, read_key, read_stamp

__all__ = ["NONE", "SILENT", "Credentials", "Fixed", "KeyFile", "Watch", "rendered"]

_LOOK_AFTER = 1.0  # seconds in which a key file is taken to be as it was


class Credentials(Protocol):
    templates: Mapping[str, str]
    """Header name -> template for the secret."""

    def lines(self) -> bytes | None:
        """Header lines, each with its line end; None where `obtain` has to be awaited."""

    async def obtain(self) -> bytes:
        """The lines, as soon as there are any. Raises Fault."""

    async def instead_of(self, refused: bytes) -> bytes | None:
        """Other lines, where the upstream has refused these; None where there are none to be had."""

    async def close(self) -> None:
        """Nothing is renewed after this."""


class Watch(NamedTuple):
    """Where credentials tell of themselves: `learn` a secret that must not show anywhere, by whose it is; `warn` of
    what the operator should know, as an event with its fields."""

    learn: Callable[[str, str], None]
    warn: Callable[..., Any]


SILENT = Watch(lambda owner, secret: None, lambda event, **fields: None)


def rendered(templates: Mapping[str, str], secret: str) -> bytes:
    return "".join(f"{name}: {template.format(secret)}\r\n" for name, template in templates.items()).encode()


class Fixed:
    """A key that stays as it is."""

    def __init__(self, templates: Mapping[str, str], key: str) -> None:
        self.templates = templates
        self._lines = rendered(templates, key)

    def lines(self) -> bytes:
        return self._lines

    async def obtain(self) -> bytes:
        return self._lines

    async def instead_of(self, refused: bytes) -> None:
        return None

    async def close(self) -> None:
        pass


NONE = Fixed({}, "")
"""For providers that ask for nothing."""


class KeyFile:
    """The key in a file, read anew when the file has changed.

    A call that comes more than a second after the last look starts the next one, off the event loop, and goes on with
    the key in hand; where the upstream refuses that one, the call waits for a look. A file that is gone, or that holds
    no key, changes nothing but the log. Raises OSError or BadKeyFile where there is no key to begin with.
    """

    def __init__(self, owner: str, templates: Mapping[str, str], path: Path, watch: Watch = SILENT) -> None:
        self.templates = templates
        self._owner = owner
        self._path = path
        self._watch = watch
        self._stamp: FileStamp | None = None
        self._task: asyncio.Task[None] | None = None
        self._complaint = ""
        self._take(*_found(path, None))

    def lines(self) -> bytes:
        if monotonic() >= self._next and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look())
        return self._lines

    async def obtain(self) -> bytes:
        return self._lines

    async def instead_of(self, refused: bytes) -> bytes | None:
        if self._lines == refused:
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._look())
            await asyncio.wait((self._task,))
        return None if self._lines == refused else self._lines

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _look(self) -> None:
        try:
            self._take(*await asyncio.to_thread(_found, self._path, self._stamp))
            self._complaint = ""
        except (OSError, BadKeyFile) as error:
            self._next = monotonic() + _LOOK_AFTER
            self._complain(error.strerror or "unreadable" if isinstance(error, OSError) else str(error))
        finally:
            self._task = None

    def _take(self, stamp: FileStamp, key: str | None) -> None:
        self._next = monotonic() + _LOOK_AFTER
        self._stamp = stamp
        if key is not None:
            self._watch.learn(self._owner, key)
            self._lines = rendered(self.templates, key)

    def _complain(self, reason: str) -> None:
        if reason != self._complaint:
            self._complaint = reason
            self._watch.warn("key_file", provider=self._owner, reason=reason, instead="the last key is kept")


def _found(path: Path, known: FileStamp | None) -> tuple[FileStamp, str | None]:
    """The file's stamp, and the key where the stamp is not the known one."""
    stamp = read_stamp(path)
    return stamp, None if stamp == known else read_key(path)
