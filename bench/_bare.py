"""The bare relay, the reference of the benchmarks: an aiohttp proxy that forwards bytes without reading them.

It has the usual tuning: uvloop, no access log, no cookies, no decompression, no limit of connections, one write per
read. Start it with `python _bare.py PORT UPSTREAM_PORT`.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web
from yarl import URL

__all__: list[str] = []


class Relay:
    """Forwards each request to the upstream."""

    def __init__(self, session: ClientSession, upstream: URL) -> None:
        self.session = session
        self.upstream = upstream

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {"content-type": request.content_type}
        async with self.session.post(self.upstream, data=body, headers=headers) as answer:
            if answer.content_type != "text/event-stream":
                return web.Response(status=answer.status, body=await answer.read(), content_type=answer.content_type)
            response = web.StreamResponse(status=answer.status, headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response


async def main() -> None:
    port, upstream = int(sys.argv[1]), URL(f"http://127.0.0.1:{sys.argv[2]}/v1/chat/completions")
    session = ClientSession(
        connector=TCPConnector(limit=0),
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=["user-agent", "accept", "accept-encoding"],
        timeout=ClientTimeout(total=None, sock_read=60),
    )
    async with session:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", Relay(session, upstream).__call__)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
