"""A client of chat, and of Messages, for the fakes: it sends one request and keeps the reply, complete or broken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from dragoman.adapters.sse import Event, Framer, Item
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = ["ChatClient", "ClientReply"]

CHAT_PATHS = {
    "openai": "/chat/completions",
    "databricks": "/serving-endpoints/llama/invocations",
    "azure": "/chat/completions?api-version=2024-05-01-preview",
    "mindie": "/v1/chat/completions",
    "anthropic": "/v1/messages",
}
REQUIRED_HEADERS = {"anthropic": {"anthropic-version": "2023-06-01"}}
REQUIRED_FIELDS: dict[str, JsonObject] = {"anthropic": {"max_tokens": 64}}


@dataclass
class ClientReply:
    """A reply as the client received it. `error` is the exception of a broken reply."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""
    error: Exception | None = None

    @property
    def body(self) -> JsonValue:
        return json.loads(self.raw)

    @property
    def message(self) -> JsonObject:
        """The message of the first choice of a whole reply."""
        message: JsonObject = self.body["choices"][0]["message"]
        return message

    @property
    def items(self) -> list[Item]:
        framer = Framer(limit=64 * 1024 * 1024)
        return [*framer.feed(self.raw), *framer.close()]

    @property
    def events(self) -> list[JsonValue]:
        """The events as JSON; `[DONE]` stays text."""
        texts = [item.data for item in self.items if isinstance(item, Event)]
        return [text.decode() if text == b"[DONE]" else json.loads(text) for text in texts]

    @property
    def chunks(self) -> list[JsonObject]:
        return [event for event in self.events if event != "[DONE]"]

    @property
    def done(self) -> int:
        """How many [DONE] the stream has."""
        return self.events.count("[DONE]")

    @property
    def deltas(self) -> list[JsonObject]:
        return [choice.get("delta") or {} for chunk in self.chunks for choice in chunk["choices"]]

    @property
    def calls(self) -> list[JsonObject]:
        """The deltas of tool calls."""
        return [call for delta in self.deltas for call in delta.get("tool_calls", [])]

    @property
    def text(self) -> str:
        return "".join(delta["content"] for delta in self.deltas if isinstance(delta.get("content"), str))

    @property
    def finishes(self) -> list[str]:
        reasons = [choice["finish_reason"] for chunk in self.chunks for choice in chunk["choices"]]
        return [reason for reason in reasons if reason is not None]

    def join_arguments(self) -> dict[int, str]:
        """Map the index of each streamed call to its arguments."""
        return {
            index: "".join(call["function"].get("arguments", "") for call in self.calls if call["index"] == index)
            for index in sorted({call["index"] for call in self.calls})
        }


class ChatClient:
    """Sends chat requests to fakes."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def send(
        self,
        fake: FakeProvider,
        text: str = "Hello",
        *,
        headers: Mapping[str, str] | None = None,
        read_timeout: float = 20.0,
        **fields: JsonValue,
    ) -> ClientReply:
        """Send the text as a user message; `fields` are added to the body. `read_timeout` limits
        each read, in seconds."""
        required = REQUIRED_FIELDS.get(fake.dialect, {})
        body = {"model": "llama", "messages": [{"role": "user", "content": text}], **required, **fields}
        headers = {**REQUIRED_HEADERS.get(fake.dialect, {}), **(headers or {})}
        reply = ClientReply()
        limits = aiohttp.ClientTimeout(sock_read=read_timeout)
        url = fake.base_url + CHAT_PATHS[fake.dialect]
        try:
            async with self._session.post(
                url, json=body, headers=headers, timeout=limits, allow_redirects=False
            ) as response:
                reply.status, reply.headers = response.status, dict(response.headers)
                async for data in response.content.iter_any():
                    reply.raw += data
        except (aiohttp.ClientError, TimeoutError) as error:
            reply.error = error
        return reply

    async def send_both(
        self, behaviour: str, dialect: str = "openai", **fields: JsonValue
    ) -> tuple[ClientReply, ClientReply]:
        """Request the same behaviour as a whole reply and as a stream."""
        async with FakeProvider(dialect, behaviour=behaviour) as fake:
            return await self.send(fake, stream=False, **fields), await self.send(fake, stream=True, **fields)
