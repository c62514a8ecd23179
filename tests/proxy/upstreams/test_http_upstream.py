"""What an HTTP upstream makes of a call: its address, and the client's headers that may pass."""

from __future__ import annotations

import pytest

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Provider
from dragoman.proxy.config.traffic import Timeouts
from dragoman.proxy.upstreams.credentials import NO_CREDENTIALS
from dragoman.proxy.upstreams.http import HttpUpstream

PATHS = {
    "/chat/completions": True,
    "/serving-endpoints/a%2Fb/invocations": True,
    "/serving-endpoints/a..b/invocations": True,
    "/serving-endpoints/../admin": False,
    "/serving-endpoints/%2e%2E/admin": False,
    "/serving-endpoints/./admin": False,
    "/a/..": False,
    "/a?b=c": False,
    "/a#b": False,
    "/a b": False,
    "/a\\b": False,
    "/a%5Cb": False,
    "/a%00b": False,
    "/a%zz": False,
    "/a\r\nX: y": False,
    "": False,
    "http://evil/": False,
    "@evil/": False,
}


@pytest.mark.parametrize("path", PATHS)
async def test_addresses_are_joined_and_never_normalized(path: str) -> None:
    provider = Provider(dialect="openai", base_url="https://host/base/")
    up = HttpUpstream("p", provider, Timeouts(), NO_CREDENTIALS)
    try:
        if PATHS[path]:
            assert up._write_target(path, "a=b") == f"/base{path}?a=b"
        else:
            with pytest.raises(Fault, match="cannot be part of an address"):
                up._write_target(path, "")
    finally:
        await up.close()


async def test_what_could_end_a_header_line_stays_here() -> None:
    provider = Provider(dialect="openai", base_url="https://host", headers={"X-Own": "provider"})
    up = HttpUpstream("p", provider, Timeouts(), NO_CREDENTIALS)
    try:
        forwarded = {"a": "1", "b": "x\r\nEvil: 1", "c": "\0", "d": "caf\udce9", "x-own": "client"}
        assert up._write_forwarded(forwarded) == b"a: 1\r\nd: caf\xe9\r\n"
    finally:
        await up.close()
