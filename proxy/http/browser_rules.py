"""What pages in browsers may do: the rules about Host, Origin and Sec-Fetch-Site, and the headers of CORS.

A proxy without keys trusts everyone who reaches it, and every page that a browser shows on the same machine reaches it.
So it serves only requests that no page of another site can cause (Fetch standard, 3.2 and 4.8; W3C Fetch Metadata):

    Host             a loopback name, an IP address or one of `server.allowed_hosts`: a page can make its own name lead
                     to 127.0.0.1 (DNS rebinding), but it cannot send another name than its own
    Origin           absent, that of the server itself, or one of `server.allowed_origins`
    Sec-Fetch-Site   absent, `same-origin` or `none`, unless Origin is allowed
    Content-Type     `application/json` for a body (`request_body`): no page can send it elsewhere without asking first

With keys these rules do not apply, because pages do not have a key. In both cases CORS answers depend on
`server.allowed_origins`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Server
from dragoman.proxy.config.urls import is_loopback

__all__ = ["BrowserRules", "find_host_name"]

_METHODS = "GET, HEAD, POST, DELETE"
_MAX_AGE = "600"  # seconds for which a browser may remember the answer to a preflight request
_OWN_SITES = ("same-origin", "none")
_NAMES = re.compile(r"[A-Za-z0-9-]{1,100}(?:\s*,\s*[A-Za-z0-9-]{1,100}){0,99}")
_MAX_SHOWN = 100  # characters of a client's value in a message


class BrowserRules:
    """The rules of one listener. `has_keys` says whether clients need a key; `*` allows all origins only then."""

    def __init__(self, server: Server, *, has_keys: bool) -> None:
        self._has_keys = has_keys
        self._origins = frozenset(origin for origin in server.allowed_origins if has_keys or origin != "*")
        self._hosts = frozenset(name.lower() for name in (server.host, *server.allowed_hosts))
        self._is_own_host = lru_cache(maxsize=256)(self._find_host)

    def check(self, host: str, headers: Mapping[str, str]) -> None:
        """Raises Fault for a request to this host that a page of another site may have caused."""
        if self._has_keys:
            return
        if host and not self._is_own_host(host):
            raise _forbidden_host(host)
        origin = headers.get("Origin")
        if origin is None:
            if headers.get("Sec-Fetch-Site", "none") not in _OWN_SITES:
                raise _forbidden_origin("a page of another site")
        elif not self._allows(origin) and origin.partition("://")[2] != host.lower():
            raise _forbidden_origin(repr(origin[:_MAX_SHOWN]))

    def write_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers that let the page that sent these read the response; none if its origin is not allowed."""
        if not self._origins:
            return {}
        if "*" in self._origins:
            return {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "*"}
        origin = headers.get("Origin")
        if origin is None or not self._allows(origin):
            return {"Vary": "Origin"}
        return {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": "*", "Vary": "Origin"}

    def answer_preflight(self, headers: Mapping[str, str]) -> dict[str, str] | None:
        """The headers of the response to a preflight request of an allowed origin, `write_headers` not included; None
        for any other request with the method OPTIONS. Pages may send every header."""
        origin, asks = headers.get("Origin"), "Access-Control-Request-Method" in headers
        if origin is None or not asks or not self._allows(origin):
            return None
        answer = {"Access-Control-Allow-Methods": _METHODS, "Access-Control-Max-Age": _MAX_AGE}
        if _NAMES.fullmatch(names := headers.get("Access-Control-Request-Headers", "")):
            answer["Access-Control-Allow-Headers"] = names
        if headers.get("Access-Control-Request-Private-Network") == "true":
            answer["Access-Control-Allow-Private-Network"] = "true"
        return answer

    def _allows(self, origin: str) -> bool:
        return origin in self._origins or "*" in self._origins

    def _find_host(self, host: str) -> bool:
        """Whether the value of the header Host is one that no page of another site can send."""
        name = find_host_name(host)
        return is_loopback(name) or _is_address(name) or name in self._hosts


def find_host_name(host: str) -> str:
    """The name or address in the value of a header Host, in lower case, without the port."""
    name = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    return name.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _forbidden_host(host: str) -> Fault:
    text = (
        f"the request names the host {host[:_MAX_SHOWN]!r}, and a proxy without keys answers to localhost, to IP "
        "addresses and to the names in server.allowed_hosts"
    )
    return Fault("forbidden", text, code="host_not_allowed")


def _forbidden_origin(origin: str) -> Fault:
    text = (
        f"the request comes from {origin}, and a proxy without keys serves pages only if their origin is in "
        "server.allowed_origins"
    )
    return Fault("forbidden", text, code="origin_not_allowed")
