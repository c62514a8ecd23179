"""The upstream that litellm calls: its objects go on as the bytes of an openai provider, so that the readers judge
them as they judge any other's.

litellm ends a stream that was cut short with a finish reason of its own making. Whether the provider gave one, it notes
in `received_finish_reason`; a last chunk without that is told as what it is, a stream cut short.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from dragoman.adapters.call import Call, Headers, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Provider, Timeouts

from .failures import answered, fault_of

__all__ = ["FUNCTIONS", "LitellmUpstream", "Stream", "Whole", "arguments"]

_CUT = "the stream was cut short"
_EARLY = "Stream ended before a finish_reason was received"
"""How litellm says so from 1.109 on; older ones make up a finish reason."""

FUNCTIONS: Mapping[str, str] = {"/chat/completions": "acompletion", "/embeddings": "aembedding"}
"""By the path of the call."""

_OFF: Mapping[str, JsonObject] = {"/chat/completions": {"_skip_mcp_handler": True}}
_JSON, _SSE = "application/json", "text/event-stream"


def arguments(provider: Provider, call: Call) -> JsonObject:
    """What litellm's function is called with, credentials and address aside. The model says the vendor first, always:
    nothing behind it counts as one."""
    model = f"{provider.vendor}/{call.body['model']}" if provider.vendor else call.body["model"]
    return {**call.body, **_OFF.get(call.path, {}), "model": model}


class LitellmUpstream:
    """One provider. The library is loaded before the first call; its connections, which all share, are closed with the
    last one."""

    _made = 0

    def __init__(self, name: str, provider: Provider, timeouts: Timeouts) -> None:
        LitellmUpstream._made += 1
        self._name = name
        self._provider = provider
        self._connect = timeouts.connect
        self._closing: set[asyncio.Task[None]] = set()
        self._fixed: JsonObject = {name: secret.get_secret_value() for name, secret in provider.parameters.items()}
        self._fixed |= {"timeout": timeouts.total, "max_retries": 0, "num_retries": 0}
        if provider.api_key is not None:
            self._fixed["api_key"] = provider.api_key.get_secret_value()
        if provider.base_url is not None:
            self._fixed["api_base"] = provider.base_url
        if provider.headers:
            self._fixed["extra_headers"] = dict(provider.headers)

    async def send(self, call: Call, *, stream: bool, forwarded: Headers) -> Whole | Stream:
        from .library import CONNECT, load

        CONNECT.set(self._connect)
        try:
            function = getattr(load(), FUNCTIONS[call.path])
            reply = await function(**arguments(self._provider, call), **self._fixed)
        except Exception as error:  # noqa: BLE001 - whatever it is, litellm could not make the call
            return self._failed(error)
        if stream:
            return Stream(self._name, reply, self._closing)
        return Whole(200, {}, _plain(reply))

    async def close(self) -> None:
        if self._closing:
            await asyncio.wait(self._closing)
        LitellmUpstream._made -= 1
        if LitellmUpstream._made == 0:
            from .library import disconnect

            await disconnect()

    def _failed(self, error: Exception) -> Whole:
        fault = fault_of(error, self._name)
        if fault is not None:
            raise fault
        return Whole(*answered(error))


class Whole:
    """A reply that came whole."""

    def __init__(self, status: int, headers: Headers, body: JsonObject) -> None:
        self.status = status
        self._body = orjson.dumps(body)
        self.headers: Headers = {**headers, "content-type": _JSON, "content-length": str(len(self._body))}

    @property
    def is_at_end(self) -> bool:
        return not self._body

    async def read_chunk(self) -> bytes:
        body, self._body = self._body, b""
        return body

    def finish(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""


class Stream:
    """A stream, chunk by chunk as the bytes of events."""

    status = 200
    is_at_end = False

    def __init__(self, name: str, source: Any, closing: set[asyncio.Task[None]]) -> None:
        self.headers: Headers = {"content-type": _SSE}
        self._name = name
        self._source = source
        self._chunks: AsyncIterator[Any] = aiter(source)
        self._closing = closing
        self._ended = False
        self._closed = False

    async def read_chunk(self) -> bytes:
        if self._ended:
            return b""
        try:
            body = _plain(await anext(self._chunks))
        except StopAsyncIteration:
            self._ended = True
            return b""
        except Exception as error:  # noqa: BLE001 - whatever it is, the stream ends with it
            return self._failed(error)
        if _finishes(body) and self._source.received_finish_reason is None:
            self._ended = True
            raise self._cut()
        return _event(body)

    def finish(self) -> None:
        self.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = self._ended = True
        task = asyncio.get_running_loop().create_task(self._close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self) -> None:
        await self._source.aclose()

    def _failed(self, error: Exception) -> bytes:
        self._ended = True
        if _EARLY in str(error):
            raise self._cut()
        fault = fault_of(error, self._name)
        if fault is None:
            return _event(answered(error).body)
        if fault.code == "upstream_disconnected":
            fault = self._cut(fault.__cause__)
        raise fault

    def _cut(self, cause: BaseException | None = None) -> Fault:
        fault = Fault("upstream_invalid_response", f"upstream {self._name}: {_CUT}", code="upstream_truncated")
        fault.__cause__ = cause
        return fault


def _finishes(chunk: Mapping[str, Any]) -> bool:
    return any(choice.get("finish_reason") for choice in chunk.get("choices", ()))


def _says_nothing(chunk: Mapping[str, Any]) -> bool:
    return all(choice.get("delta") == {} for choice in chunk.get("choices", ())) and not _finishes(chunk)


def _event(body: JsonObject) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(body)


def _plain(reply: Any) -> JsonObject:
    """One of litellm's objects as OpenAI has it: without what it adds about itself, and without nulls."""
    body: JsonObject = reply.model_dump(exclude_none=True)
    for choice in body.get("choices", ()):
        for part in (choice, choice.get("message", {}), choice.get("delta", {})):
            part.pop("provider_specific_fields", None)
        if "message" in choice:
            choice["message"].setdefault("content", None)
        if "delta" in choice:
            choice.setdefault("finish_reason", None)
    if "usage" in body and body.get("object") == "chat.completion.chunk" and _says_nothing(body):
        body["choices"] = []
    return body
