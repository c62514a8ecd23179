"""A blocking client for OpenAI's chat completions, with one connection for each request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from dragoman.adapters.sse import Event, Framer, TooLong
from dragoman.proxy.cli.terminal import remove_controls
from dragoman.proxy.config.header_values import BAD_SECRET_HINT, explain_bad_secret
from dragoman.proxy.config.urls import BadUrl, check_base_url

__all__ = ["ChatClient", "ChatError", "Message", "ServerUnreachable"]

Message: TypeAlias = dict[str, str]

_READ_SIZE = 65536  # bytes
_DEFAULT_MODEL = "/azure/info?api-version=2024-05-01-preview"
"""Where a dragoman describes its default model, to clients of Azure."""
_MAX_BODY = 1 << 24  # bytes


class ChatError(Exception):
    """The server refused or failed. The text says why, and controls no terminal. `status` is the HTTP status of a
    refusal, else None."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(remove_controls(text))
        self.status = status

    @property
    def exit_status(self) -> int:
        """As `dragoman call` ends: 1 if the request is refused, 3 if the provider or the network fails."""
        return 1 if self.status is not None and 400 <= self.status < 500 else 3


class ServerUnreachable(ChatError):
    """Nothing answers at the address."""


class ChatClient:
    """`base_url` ends with /v1, `timeout` is in seconds. Raises ValueError if `base_url` is not an address, or
    the key cannot be sent."""

    def __init__(self, base_url: str, key: str | None = None, timeout: float = 600.0) -> None:
        try:
            check_base_url(base_url)
        except BadUrl as error:
            raise ValueError(f"{error.message}; expected {error.expected}") from None
        if (problem := explain_bad_secret(key or "", "the key")) is not None:
            raise ValueError(f"{problem}; {BAD_SECRET_HINT}")
        self.base_url = base_url.rstrip("/")
        parts = urlsplit(self.base_url)
        self._connection_class = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host, self._port, self._timeout = parts.hostname or "", parts.port, timeout
        self._path = parts.path
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def is_reachable(self) -> bool:
        """True if a server answers at the address. Raises ChatError if it refuses the request."""
        try:
            self.fetch_models()
        except ServerUnreachable:
            return False
        return True

    def fetch_models(self) -> list[str]:
        """The names of the models that the server lists. Raises ChatError."""
        with closing(self._connect()) as connection:
            listing = _parse_object(_read_body(self._send(connection, "GET", "/models", None)))
        names = (model.get("id") for model in _list_objects(listing.get("data")))
        return [name for name in names if isinstance(name, str) and name]

    def fetch_default_model(self) -> str | None:
        """The model for requests that name none, as a dragoman says; None if there is none, or at other servers."""
        with closing(self._connect()) as connection:
            try:
                found = _parse_object(_read_body(self._send(connection, "GET", _DEFAULT_MODEL, None, root=True)))
            except ChatError:
                return None
        name = found.get("model_name")
        return name if isinstance(name, str) else None

    def stream_answer(self, model: str, messages: Sequence[Message]) -> Iterator[str]:
        """The text of the model's answer, piece by piece. Raises ChatError, before or during the answer."""
        body = json.dumps({"model": model, "messages": [*messages], "stream": True})
        with (
            closing(self._connect()) as connection,
            self._send(connection, "POST", "/chat/completions", body) as response,
        ):
            for data in _read_events(response):
                if data == b"[DONE]":
                    return
                yield from _read_texts(_parse_object(data))
        raise ChatError("the answer was cut short")

    def _connect(self) -> HTTPConnection:
        return self._connection_class(self._host, self._port, timeout=self._timeout)

    def _send(
        self, connection: HTTPConnection, method: str, path: str, body: str | None, *, root: bool = False
    ) -> HTTPResponse:
        """The response with status 200. With `root`, the path is that of the server, without /v1. Raises ChatError."""
        base = self._path.removesuffix("/v1") if root else self._path
        try:
            connection.request(method, base + path, body, self._headers)
            response = connection.getresponse()
        except (OSError, HTTPException) as error:
            raise ServerUnreachable(f"{self.base_url} does not answer: {error}") from None
        if response.status != 200:
            raise ChatError(_format_error(response.status, _read_body(response), self.base_url), response.status)
        return response


def _read_body(response: HTTPResponse) -> bytes:
    """The body, or its beginning if it is large. Raises ChatError."""
    try:
        with response:
            return response.read(_MAX_BODY)
    except (OSError, HTTPException) as error:
        raise ChatError(f"the answer was cut short: {error}") from None


def _read_events(response: HTTPResponse) -> Iterator[bytes]:
    """The data of each server-sent event."""
    framer = Framer(_MAX_BODY)
    try:
        while data := response.read1(_READ_SIZE):
            for item in framer.feed(data):
                if isinstance(item, Event):
                    yield item.data
    except (OSError, HTTPException, TooLong) as error:
        raise ChatError(f"the answer was cut short: {error}") from None


def _read_texts(chunk: dict[str, Any]) -> Iterator[str]:
    """The texts in a chunk's choices. Raises ChatError for an error event."""
    if (error := chunk.get("error")) is not None:
        raise ChatError(str(error.get("message") if isinstance(error, dict) else error))
    for choice in _list_objects(chunk.get("choices")):
        if isinstance(delta := choice.get("delta"), dict):
            texts = (delta.get("content"), delta.get("refusal"))
            yield from (text for text in texts if isinstance(text, str) and text)


def _list_objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _parse_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise ChatError("the server does not answer in JSON; is this the address of an OpenAI API?") from None
    return value if isinstance(value, dict) else {}


def _format_error(status: int, body: bytes, base_url: str) -> str:
    if status == 404 and not urlsplit(base_url).path:
        return f"nothing is served at this address (status 404); it usually ends with /v1: --base-url {base_url}/v1"
    try:
        return f"{json.loads(body)['error']['message']} (status {status})"
    except (ValueError, KeyError, TypeError, RecursionError):
        text = f"is {base_url} the address of an OpenAI API? --base-url names another"
        return f"the server answered with status {status}; {text}"
