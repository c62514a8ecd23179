"""What a browser does with the page's addresses, without a browser."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = ["PageClient"]


class PageClient:
    """Asks one listener of a proxy."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self.url = session, url

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        """The status and the text of an answer."""
        async with self._session.get(self.url + path, headers=headers, allow_redirects=False) as answer:
            return answer.status, await answer.text()

    async def read(self, path: str) -> JsonValue:
        """The JSON at a path below /page/api/."""
        status, text = await self.get(f"/page/api/{path}")
        assert status == 200, text
        return json.loads(text)

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, str]:
        """Send JSON to a path below /page/api/ as the page does."""
        token = {"X-Csrf-Token": (await self.read("about"))["csrf"]}
        given = {**token, **headers}
        async with self._session.post(f"{self.url}/page/api/{path}", json=body, headers=given) as answer:
            return answer.status, await answer.text()

    async def list_ended(self, count: int = 1) -> list[JsonObject]:
        """The exchanges, the latest first, once so many have ended."""
        for _ in range(200):
            found: list[JsonObject] = (await self.read("exchanges"))["exchanges"]
            if sum(one["outcome"] != "running" for one in found) >= count:
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(f"{count} exchanges have not ended")

    async def read_latest(self) -> JsonObject:
        """Everything that is kept of the latest exchange."""
        found: JsonObject = await self.read(f"exchanges/{(await self.list_ended())[0]['id']}")
        return found
