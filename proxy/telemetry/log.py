"""The log: JSON lines on standard error, exactly one for each exchange; no configured secret ever shows in it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from traceback import format_exception
from typing import Any, BinaryIO, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import orjson

from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.masks import is_secret
from dragoman.proxy.config.models import Config

__all__ = ["Log", "Mask", "Note", "Outcome", "logger", "secrets"]

Outcome = Literal["ok", "fault", "client_left"]
_KEPT = 4
_LEVELS = ("debug", "info", "warning", "error", "critical")
"""Nothing is critical: with this one nothing is written."""

_SHORTEST = 8  # characters of what is kept secret


class Mask:
    """Takes secrets out of bytes and text, by content: those given, and those learned while the proxy runs. What has
    only a few characters, as keys for servers that want none have, is no secret: replies would lose their words to it.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._given = tuple(secrets)
        self._learned: dict[str, tuple[str, ...]] = {}
        self._make()

    def learn(self, owner: str, secret: str) -> None:
        """A secret that takes the place of the owner's last one, which may still be on its way somewhere: of each
        owner the latest few are kept."""
        known = self._learned.get(owner, ())
        if secret not in known:
            self._learned[owner] = (*known, secret)[-_KEPT:]
            self._make()

    def _make(self) -> None:
        secrets = (*self._given, *(secret for known in self._learned.values() for secret in known))
        forms = {form for secret in secrets if len(secret) >= _SHORTEST for form in _forms(secret)}
        pattern = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
        self._bytes = re.compile(pattern.encode()) if pattern else None

    def __call__(self, data: bytes) -> bytes:
        return data if self._bytes is None else self._bytes.sub(b"***", data)


def _forms(secret: str) -> Iterator[str]:
    """As it is, as JSON text holds it, and as JSON text inside JSON text holds it."""
    for _ in range(3):
        yield secret
        secret = orjson.dumps(secret).decode()[1:-1]


def secrets(config: Config) -> list[str]:
    """Every secret that the configuration holds."""
    found = [key.key.get_secret_value() for key in config.keys]
    for provider in config.providers.values():
        given = {"api_key": provider.api_key, **provider.parameters}
        given |= {"client_secret": provider.oauth.client_secret} if provider.oauth else {}
        found += [secret.get_secret_value() for name, secret in given.items() if secret and is_secret((name,))]
    return [*found, *_headers(config), *_proxy_passwords(config)]


def _headers(config: Config) -> Iterator[str]:
    """Any header of a provider may be a secret, or hold one behind a word such as Bearer."""
    for provider in config.providers.values():
        for value in provider.headers.values():
            yield from (value, value.partition(" ")[2])


def _proxy_passwords(config: Config) -> Iterator[str]:
    """As they stand in the address, and as they are."""
    for provider in config.providers.values():
        if provider.proxy is not None and (password := urlsplit(provider.proxy.get_secret_value()).password):
            yield from (password, unquote(password))


Renderer: TypeAlias = Callable[[dict[str, Any]], bytes]


class Log:
    """Writes a line for each event, in one step: there is one for each exchange, and it shall cost next to nothing.

    An event is a word with fields; the field `exc_info` is an exception, of which the traceback is written.
    """

    def __init__(self, mask: Mask, render: Renderer, level: str, stream: BinaryIO) -> None:
        self._mask = mask
        self._render = render
        self._stream = stream
        self._least = _LEVELS.index(level)
        self._second = 0
        self._stamp = ""

    def debug(self, event: str, **fields: Any) -> None:
        self._write(0, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write(1, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write(2, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write(3, event, fields)

    def exchange(self, line: dict[str, Any]) -> None:
        """The same as `info("exchange", **line)`; the line is altered."""
        self._write(1, "exchange", line)

    def _write(self, level: int, event: str, line: dict[str, Any]) -> None:
        if level < self._least:
            return
        line["event"] = event
        line["level"] = _LEVELS[level]
        line["timestamp"] = self._timestamp()
        if (error := line.pop("exc_info", None)) is not None:
            line["exception"] = "".join(format_exception(error)).rstrip()
        self._stream.write(self._mask(self._render(line)) + b"\n")
        self._stream.flush()

    def _timestamp(self) -> str:
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second, self._stamp = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._stamp}.{int((now - second) * 1000):03d}Z"


def logger(mask: Mask, style: str = "json", level: str = "info", stream: BinaryIO | None = None) -> Log:
    """A log that goes to `stream`, or to standard error. `style` is json or console."""
    return Log(mask, _as_json if style == "json" else _for_people(), level, stream or sys.stderr.buffer)


def _as_json(line: dict[str, Any]) -> bytes:
    return orjson.dumps(line, default=str)


def _for_people() -> Renderer:
    """structlog's, which is loaded for this alone: with it come rich and pygments, a fifth of the time that the proxy
    takes to start."""
    from structlog.dev import ConsoleRenderer

    render = ConsoleRenderer(colors=False)
    return lambda line: str(render(None, str(line["level"]), line)).encode("utf-8", "backslashreplace")


@dataclass(slots=True)
class Note:
    """What the log tells of one exchange. Unset fields are left out of the line."""

    request_id: str
    dialect: str
    protocol: str
    started: float = field(default_factory=time.perf_counter)
    key: str | None = None
    model: str | None = None
    target: str | None = None
    attempts: int = 0
    status: int | None = None
    upstream_status: int | None = None
    stream: bool = False
    first_token_ms: float | None = None
    events: int = 0
    bytes: int = 0
    receipt: Receipt | None = None
    usage: dict[str, Any] | None = None
    fault: Fault | None = None
    cause: BaseException | None = None
    outcome: Outcome = "ok"

    def elapsed_ms(self) -> float:
        return round((time.perf_counter() - self.started) * 1000, 3)

    def record_fault(self, fault: Fault) -> None:
        self.fault, self.cause, self.outcome = fault, fault.__cause__, "fault"

    def line(self) -> dict[str, Any]:
        line: dict[str, Any] = {
            "request_id": self.request_id,
            "dialect": self.dialect,
            "protocol": self.protocol,
            "attempts": self.attempts,
            "outcome": self.outcome,
            "stream": self.stream,
            "events": self.events,
            "bytes": self.bytes,
            "duration_ms": self.elapsed_ms(),
        }
        for name in _OPTIONAL:
            if (value := getattr(self, name)) is not None:
                line[name] = value
        if self.receipt is not None and self.receipt.changes:
            line["changes"] = [change.public() for change in self.receipt.changes]
        if self.receipt is not None and self.receipt.violations:
            line["violations"] = self.receipt.violations
        if self.usage:
            line["usage"] = {name: self.usage[name] for name in _USAGE if self.usage.get(name) is not None}
        if (fault := self.fault) is not None:
            line |= {"fault": fault.code or fault.kind, "fault_kind": fault.kind, "message": fault.message}
        if self.cause is not None:
            line["cause"] = f"{type(self.cause).__name__}: {self.cause}"[:300]
        return line


_OPTIONAL = ("key", "model", "target", "status", "upstream_status", "first_token_ms")
_USAGE = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens")
