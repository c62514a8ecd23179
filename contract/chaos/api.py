"""The HTTP API of the fault proxies: the paths, fields and statuses of Toxiproxy 2, so that its clients work."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from aiohttp import web

from dragoman.contract.json_types import JsonValue

from .collection import ChaosProxies
from .toxics import ChaosError, Toxic

__all__ = ["TOXIPROXY_VERSION", "ChaosApi"]

TOXIPROXY_VERSION = "2.12.0"  # whose API this is; clients read it

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ChaosApi:
    """Serves the API for the proxies of `proxies` at `host:port`; they are stopped with it."""

    def __init__(self, proxies: ChaosProxies, host: str = "127.0.0.1", port: int = 8474) -> None:
        self.proxies, self.host, self.port = proxies, host, port
        app = web.Application(middlewares=[_answer_errors])
        one = "/proxies/{proxy}"
        app.add_routes(
            [
                web.get("/version", self._show_version),
                web.post("/reset", self._reset),
                web.post("/populate", self._populate),
                web.get("/proxies", self._list_proxies),
                web.post("/proxies", self._add_proxy),
                web.get(one, self._show_proxy),
                web.post(one, self._update_proxy),
                web.patch(one, self._update_proxy),
                web.delete(one, self._remove_proxy),
                web.get(f"{one}/toxics", self._list_toxics),
                web.post(f"{one}/toxics", self._add_toxic),
                web.get(f"{one}/toxics/{{toxic}}", self._show_toxic),
                web.post(f"{one}/toxics/{{toxic}}", self._update_toxic),
                web.patch(f"{one}/toxics/{{toxic}}", self._update_toxic),
                web.delete(f"{one}/toxics/{{toxic}}", self._remove_toxic),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None)

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def __aenter__(self) -> Self:
        """Start listening. Raises OSError if the port is taken."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
        await self.proxies.__aexit__(kind, error, trace)

    async def _show_version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": TOXIPROXY_VERSION})

    async def _reset(self, request: web.Request) -> web.Response:
        await self.proxies.reset()
        return web.Response(status=204)

    async def _populate(self, request: web.Request) -> web.Response:
        added = await self.proxies.populate(await _read_json(request))
        return web.json_response({"proxies": [proxy.to_json() for proxy in added]}, status=201)

    async def _list_proxies(self, request: web.Request) -> web.Response:
        return web.json_response({proxy.name: proxy.to_json() for proxy in self.proxies})

    async def _add_proxy(self, request: web.Request) -> web.Response:
        proxy = await self.proxies.add_json(await _read_json(request))
        return web.json_response(proxy.to_json(), status=201)

    async def _show_proxy(self, request: web.Request) -> web.Response:
        return web.json_response(self.proxies.find(request.match_info["proxy"]).to_json())

    async def _update_proxy(self, request: web.Request) -> web.Response:
        proxy, fields = self.proxies.find(request.match_info["proxy"]), await _read_json(request)
        if not isinstance(fields, dict):
            raise ChaosError("bad request body: expected an object")
        await proxy.update(fields)
        return web.json_response(proxy.to_json())

    async def _remove_proxy(self, request: web.Request) -> web.Response:
        await self.proxies.remove(request.match_info["proxy"])
        return web.Response(status=204)

    async def _list_toxics(self, request: web.Request) -> web.Response:
        toxics = self.proxies.find(request.match_info["proxy"]).toxics
        return web.json_response([toxic.to_json() for toxic in toxics])

    async def _add_toxic(self, request: web.Request) -> web.Response:
        proxy = self.proxies.find(request.match_info["proxy"])
        toxic = proxy.add_toxic(Toxic.from_json(await _read_json(request)))
        return web.json_response(toxic.to_json())

    async def _show_toxic(self, request: web.Request) -> web.Response:
        proxy = self.proxies.find(request.match_info["proxy"])
        return web.json_response(proxy.find_toxic(request.match_info["toxic"]).to_json())

    async def _update_toxic(self, request: web.Request) -> web.Response:
        proxy = self.proxies.find(request.match_info["proxy"])
        toxic = proxy.update_toxic(request.match_info["toxic"], await _read_json(request))
        return web.json_response(toxic.to_json())

    async def _remove_toxic(self, request: web.Request) -> web.Response:
        self.proxies.find(request.match_info["proxy"]).remove_toxic(request.match_info["toxic"])
        return web.Response(status=204)


async def _read_json(request: web.Request) -> JsonValue:
    """Read the body, whatever its media type says: clients differ in it."""
    try:
        return json.loads(await request.read())
    except (ValueError, RecursionError):
        raise ChaosError("bad request body: not JSON") from None


@web.middleware
async def _answer_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Refuse browsers, so that no web page controls the proxies, and write errors as JSON."""
    try:
        if request.headers.get("User-Agent", "").startswith("Mozilla/"):
            raise ChaosError("user agent not allowed", 403)
        return await handler(request)
    except ChaosError as error:
        return _write_error(str(error), error.status)
    except web.HTTPException as error:
        return _write_error(f"{request.method} {request.path}: {error.reason.lower()}", error.status)
    except OSError as error:
        return _write_error(f"cannot listen: {error.strerror}", 500)


def _write_error(message: str, status: int) -> web.Response:
    return web.json_response({"error": message, "status": status}, status=status)
