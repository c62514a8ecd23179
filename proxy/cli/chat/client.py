"""A conversation with a server of OpenAI's chat, one blocking request at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from dragoman.adapters.sse import Event, Framer, TooLong
from dragoman.proxy.config.urls import BadUrl, check_base_url

__all__ = ["ChatClient", "ChatError", "Message", "Unreachable"]

Message: TypeAlias = dict[str, str]

_READ = 65536
_LONGEST = 1 << 24


class ChatError(Exception):
    """The server refused or failed; the text says why."""


class Unreachable(ChatError):
    """Nothing answers at the address."""


class ChatClient:
    """`base_url` ends with /v1. Raises ChatError for what is no address."""

    def __init__(self, base_url: str, key: str | None = None, timeout: float = 600.0) -> None:
        try:
            check_base_url(base_url)
        except BadUrl as error:
            raise ChatError(f"{error.message}; expected {error.expected}") from None
        self.base_url = base_url.rstrip("/")
        parts = urlsplit(self.base_url)
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host, self._port, self._timeout = parts.hostname or "", parts.port, timeout
        self._path = parts.path
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def answers(self) -> bool:
        """Whether anything is there. Raises ChatError for what is there and refuses."""
        try:
            self.models()
        except Unreachable:
            return False
        return True

    def models(self) -> list[str]:
        """The names that can be asked for. Raises ChatError."""
        with closing(self._connect()) as connection:
            found = _parsed(self._sent(connection, "GET", "/models", None).read())
        return [str(model["id"]) for model in found.get("data", [])]

    def ask(self, model: str, messages: Sequence[Message]) -> Iterator[str]:
        """The answer's text, piece by piece. Raises ChatError, also on the way."""
        body = json.dumps({"model": model, "messages": [*messages], "stream": True})
        with closing(self._connect()) as connection:
            response = self._sent(connection, "POST", "/chat/completions", body)
            for event in _events(response):
                if event == b"[DONE]":
                    return
                yield from _texts(_parsed(event))
        raise ChatError("the answer was cut short")

    def _connect(self) -> HTTPConnection:
        return self._kind(self._host, self._port, timeout=self._timeout)

    def _sent(self, connection: HTTPConnection, method: str, path: str, body: str | None) -> HTTPResponse:
        try:
            connection.request(method, self._path + path, body, self._headers)
            response = connection.getresponse()
        except (OSError, HTTPException) as error:
            raise Unreachable(f"{self.base_url} does not answer: {error}") from None
        if response.status != 200:
            raise ChatError(_message(response.status, response.read(_LONGEST)))
        return response


def _events(response: HTTPResponse) -> Iterator[bytes]:
    framer = Framer(_LONGEST)
    try:
        while data := response.read1(_READ):
            for item in framer.feed(data):
                if isinstance(item, Event):
                    yield item.data
    except (OSError, HTTPException, TooLong) as error:
        raise ChatError(f"the answer was cut short: {error}") from None


def _texts(chunk: dict[str, Any]) -> Iterator[str]:
    if "error" in chunk:
        raise ChatError(str(chunk["error"].get("message")))
    for choice in chunk.get("choices", []):
        delta = choice.get("delta", {})
        yield from (text for text in (delta.get("content"), delta.get("refusal")) if text)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        raise ChatError("the server does not answer in JSON; is this the address of an OpenAI API?") from None
    return found if isinstance(found, dict) else {}


def _message(status: int, body: bytes) -> str:
    try:
        return f"{json.loads(body)['error']['message']} (status {status})"
    except (ValueError, KeyError, TypeError):
        return f"the server answered with status {status}; is this the address of an OpenAI API?"
