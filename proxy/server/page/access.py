"""Who may see the page, and the headers of all that it consists of.

Without a key it is for people at this machine: the listener and the host that the request names are loopback ones, and
no header says that another server has forwarded it. The admin listener can have a key; a browser exchanges it for a
cookie that scripts cannot read, and the key itself is in no page.

A page of another site can send requests, but read nothing and change nothing: a request that changes something carries
a token that only the page itself can read, and comes from the page's own origin.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.urls import is_loopback
from dragoman.proxy.http.browser_rules import find_host_name

__all__ = ["CSRF_HEADER", "SECURITY_HEADERS", "PageAccess", "can_serve_page", "is_local_request", "is_open_page"]

CSRF_HEADER = "X-Csrf-Token"

_FORWARDING = frozenset({"forwarded", "via", "x-real-ip"})
"""Headers by which a server says that it forwards a request, as do all that begin with X-Forwarded-."""

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
)
SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

_LIFETIME = 12 * 3600.0  # seconds of a session
_MOST_SESSIONS = 64
_FAILURE_DELAY = 1.0  # seconds
_MOST_WAITING = 8  # failed attempts to sign in at the same time
_OWN_SITES = ("same-origin", "none")
_COOKIE = "dragoman_page"


def can_serve_page(config: Config) -> bool:
    """Whether anyone can look at the page of a proxy with this configuration."""
    return is_open_page(config) or config.server.admin_port is not None


def is_open_page(config: Config) -> bool:
    """Whether the listener for clients serves the page to local requests."""
    return not config.keys and is_loopback(config.server.host)


def is_local_request(host: str, headers: Mapping[str, str]) -> bool:
    """Whether a request comes from this machine, as far as its head says: it names a loopback host, and no other server
    has forwarded it."""
    if not is_loopback(find_host_name(host)):
        return False
    names = map(str.lower, headers)
    return not any(one in _FORWARDING or one.startswith("x-forwarded-") for one in names)


class PageAccess:
    """The sessions of one listener, in memory. `key` is None if everyone who reaches the listener may see the page."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self._sessions: dict[str, tuple[float, str]] = {}  # cookie -> end, CSRF token
        self._csrf = secrets.token_urlsafe(24)
        self._waiting = 0

    @property
    def has_key(self) -> bool:
        """Whether people have to sign in."""
        return self._key is not None

    def find_csrf_token(self, headers: Mapping[str, str]) -> str | None:
        """The token of the request's session; None if it may not see the page."""
        if self._key is None:
            return self._csrf
        if self._knows_key(headers.get("Authorization", "")):
            return self._csrf
        session = self._sessions.get(_read_cookie(headers))
        return session[1] if session is not None and session[0] > time.monotonic() else None

    def check_origin(self, host: str, headers: Mapping[str, str]) -> None:
        """Raises Fault for a request that a page of another origin has caused."""
        origin = headers.get("Origin")
        is_own = origin is None or origin.partition("://")[2].lower() == host.lower()
        if not is_own or headers.get("Sec-Fetch-Site", "none") not in _OWN_SITES:
            raise Fault("forbidden", "only the page itself may ask this", code="origin_not_allowed")

    def check_csrf(self, headers: Mapping[str, str]) -> None:
        """Raises Fault unless the request has the token of its session."""
        token = self.find_csrf_token(headers)
        given = headers.get(CSRF_HEADER, "").encode("utf-8", "replace")
        if token is None or not hmac.compare_digest(given, token.encode()):
            raise Fault("forbidden", f"send the token of /page/api/about in the header {CSRF_HEADER}", code="csrf")

    async def sign_in(self, key: str) -> str | None:
        """The cookie of a new session; None, after a second, if the key is not the right one. Raises Fault if many try
        at the same time."""
        if self._waiting >= _MOST_WAITING:
            raise Fault("rate_limit", "too many attempts to sign in; try again in a second", retry_after=1.0)
        if self._key is None or not hmac.compare_digest(key.encode("utf-8", "replace"), self._key):
            self._waiting += 1
            try:
                await asyncio.sleep(_FAILURE_DELAY)
            finally:
                self._waiting -= 1
            return None
        now = time.monotonic()
        self._sessions = {name: one for name, one in self._sessions.items() if one[0] > now}
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        cookie = secrets.token_urlsafe(32)
        self._sessions[cookie] = (now + _LIFETIME, secrets.token_urlsafe(24))
        return f"{_COOKIE}={cookie}; Path=/; Max-Age={int(_LIFETIME)}; HttpOnly; SameSite=Strict"

    def sign_out(self, headers: Mapping[str, str]) -> str:
        """End the request's session. Returns the cookie that removes the browser's."""
        self._sessions.pop(_read_cookie(headers), None)
        return f"{_COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"

    def _knows_key(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        key = self._key or b""
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("utf-8", "replace"), key)


def _read_cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("Cookie", "")).get(_COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
