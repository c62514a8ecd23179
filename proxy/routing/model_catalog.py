"""What a provider says about its models: the names behind a pattern, for lists of models.

A list is asked for only when a client asks for one, at most once in five minutes; requests to models never wait for it.
A provider that does not answer in time, or has no list, adds no names.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import orjson

from dragoman.adapters.call import Call
from dragoman.adapters.faults import Fault
from dragoman.adapters.listing import ModelList
from dragoman.proxy.config.values import is_model_name
from dragoman.proxy.upstreams.credentials import CredentialObserver
from dragoman.proxy.upstreams.interface import Upstream, UpstreamResponse

__all__ = ["ModelCatalog"]

_FRESH = 300.0  # seconds that a list is used
_RETRY = 30.0  # seconds until a provider that failed is asked again
_PATIENCE = 3.0  # seconds
_MOST_NAMES = 1000
_HINT = "; is its base_url right? With OpenAI's API it usually ends with /v1"
_LONGEST = 256  # characters of a name
_MOST_BYTES = 4 * 1024 * 1024


class ModelCatalog:
    """The models of one provider. `names` are those of the last list."""

    def __init__(self, provider: str, model_list: ModelList, upstream: Upstream, observer: CredentialObserver) -> None:
        self.names: Sequence[str] = ()
        self._provider, self._list, self._upstream, self._observer = provider, model_list, upstream, observer
        self._until = 0.0
        self._lock = asyncio.Lock()

    async def refresh(self) -> None:
        """Ask the provider if its list is old. Callers at the same time wait for one answer. A failure is logged."""
        async with self._lock:
            if time.monotonic() < self._until:
                return
            try:
                self.names = [name for name in await self.fetch() if is_model_name(name)]
                self._until = time.monotonic() + _FRESH
            except Fault as fault:
                self._until = time.monotonic() + _RETRY
                self._observer.warn("model_list_failed", provider=self._provider, message=fault.message)

    async def fetch(self) -> list[str]:
        """Ask the provider for its own names of its models, at most 1000; some are no public names, such as
        paths. Raises Fault."""
        call = Call("GET", self._list.path, {}, self._list.query, self._list.headers)
        try:
            async with asyncio.timeout(_PATIENCE):
                response = await self._upstream.send(call, stream=False, forwarded={})
                body = await _read_body(response)
        except TimeoutError:
            text = f"{self._provider}: no list of models within {_PATIENCE:g} s"
            raise Fault("upstream_timeout", text) from None
        if response.status != 200:
            text = f"{self._provider}: the list of models was answered with status {response.status}"
            hint = _HINT if response.status == 404 and self._list.path == "/models" else ""
            raise Fault("upstream_invalid_response", text + hint)
        try:
            names = self._list.read_names(orjson.loads(body))
        except orjson.JSONDecodeError:
            raise Fault("upstream_invalid_response", f"{self._provider}: the list of models is not JSON") from None
        return [name for name in names if _is_plain(name)][:_MOST_NAMES]


def _is_plain(name: str) -> bool:
    """Whether a configuration may have this name of a model as it is: no pattern, no variable."""
    return name.isprintable() and 0 < len(name) <= _LONGEST and not set(name) & set("*$")


async def _read_body(response: UpstreamResponse) -> bytes:
    """The body, unless it is larger than 4 MiB. Raises Fault."""
    body = bytearray()
    try:
        while piece := await response.read_chunk():
            body += piece
            if len(body) > _MOST_BYTES:
                raise Fault("upstream_invalid_response", "the list of models is larger than 4 MiB")
    finally:
        response.close()
    return bytes(body)
