"""The command `dragoman chaos`: the API, and the proxies that its options name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from dragoman.contract.json_types import JsonValue

from .api import ChaosApi
from .collection import ChaosProxies
from .toxics import ChaosError, parse_toxic

__all__ = ["describe_chaos", "start_chaos"]


@asynccontextmanager
async def start_chaos(
    upstream: str | None, listen: str, toxics: Sequence[str], file: Path | None, host: str, port: int, seed: int
) -> AsyncIterator[ChaosApi]:
    """Start the API, the proxies of `file`, and a proxy to `upstream` with these toxics.

    Raises ChaosError for a wrong option or file, and OSError if the file cannot be read or an address is taken.
    """
    if toxics and upstream is None:
        raise ChaosError("a toxic needs the address of an upstream: dragoman chaos HOST:PORT --toxic ...")
    parsed = [parse_toxic(text) for text in toxics]
    async with ChaosApi(ChaosProxies(seed), host, port) as api:
        await api.proxies.populate(_read_file(file) if file is not None else [])
        if upstream is not None:
            proxy = await api.proxies.add("upstream", upstream, listen)
            for toxic in parsed:
                proxy.add_toxic(toxic)
        yield api


def _read_file(file: Path) -> JsonValue:
    try:
        return json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ChaosError(f"{file} is no JSON: {error}") from None


def describe_chaos(api: ChaosApi) -> str:
    """Describe the API and each proxy: where it listens, where it leads, and its toxics."""
    lines = [f"chaos API at {api.origin}"]
    for proxy in api.proxies:
        toxics = ", ".join(toxic.name for toxic in proxy.toxics) or "none"
        lines.append(f"proxy {proxy.name}: {proxy.listen} -> {proxy.upstream}, toxics: {toxics}")
    lines.append(
        f'\ncurl {api.origin}/proxies -d \'{{"name": "provider", "upstream": "127.0.0.1:9001"}}\'\n'
        f'curl {api.origin}/proxies/provider/toxics -d \'{{"type": "latency", "attributes": {{"latency": 300}}}}\'\n'
    )
    return "\n".join(lines)
