"""Access tokens by OAuth 2.0 client credentials (RFC 6749, 4.4), for Azure's and Databricks' services.

Theory of operation. A token has three ages, and a call looks at nothing but the time:

    young      a call uses it
    aging      less than a third of its life is left: a call uses it, and starts a refresh in the background
    none       expired, or never fetched: a call starts a refresh and waits for it

At most one refresh runs at a time. If it fails, the known token stays, and the next refresh may begin only after a
pause, which doubles with each failure. A call without a token does not wait for the end of that pause: it fails with
the reason of the last failure. A call that stops waiting leaves the refresh running.

A 401 from the provider means that a young token is void: its signing keys were changed, or it was revoked. That
starts a refresh too, but only once in a while: a provider may have other reasons to answer 401.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import uniform
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlsplit

import aiohttp
from yarl import URL

from dragoman.adapters.faults import Fault
from dragoman.adapters.jsontext import read_any
from dragoman.proxy.config.keyfile import BadKeyFile, read_key
from dragoman.proxy.config.models import OAuth, Provider, Tls
from dragoman.proxy.http.tls import create_tls_context

from .aiohttp_client import split_credentials
from .credentials import NO_OBSERVER, CredentialObserver, render_headers
from .errors import CLIENT_ERRORS, describe_error

__all__ = ["NoToken", "Token", "TokenEndpoint", "TokenSource"]

_TIMEOUT = 30.0  # seconds for one refresh
_PAUSES = (0.5, 60.0)  # seconds between failures: the first one, the longest
_REFUSAL_PAUSE = 10.0  # seconds in which only one 401 leads to a refresh
_DEFAULT_LIFE = 300.0  # seconds, if the endpoint does not say
_REPLY_LIMIT = 256 * 1024
_WORD = re.compile(r"[a-z_]{1,40}")  # the error codes of RFC 6749, 5.2
_TOKEN = re.compile(r"[!-~]+")


class Token(NamedTuple):
    """`life` is in seconds from when it was asked for."""

    secret: str
    life: float


@dataclass
class NoToken(Exception):
    """Why there is no token: `reason` for clients, `detail` for the log. `refused` if the endpoint rejects what the
    configuration says."""

    reason: str
    refused: bool = False
    detail: str = ""


class TokenSource:
    """Credentials with the tokens that `fetch` gets; `fetch` raises NoToken. `pauses` are in seconds."""

    def __init__(
        self,
        owner: str,
        templates: Mapping[str, str],
        fetch: Callable[[], Awaitable[Token]],
        observer: CredentialObserver = NO_OBSERVER,
        pauses: tuple[float, float] = _PAUSES,
    ) -> None:
        self.templates = templates
        self._owner = owner
        self._fetch = fetch
        self._observer = observer
        self._pauses = pauses
        self._lines = b""
        self._aging = self._expiry = self._next_try = self._next_refusal = float("-inf")
        self._failures = 0
        self._failure = NoToken("no token has been fetched yet")
        self._task: asyncio.Task[None] | None = None

    def header_lines(self) -> bytes | None:
        now = monotonic()
        if now < self._aging:
            return self._lines
        self._start(now)
        return self._lines if now < self._expiry else None

    async def fetch_header_lines(self) -> bytes:
        await self._wait_for_refresh()
        if monotonic() < self._expiry:
            return self._lines
        raise self._create_fault()

    async def replace_header_lines(self, refused: bytes) -> bytes | None:
        now = monotonic()
        if self._lines == refused and self._task is None and now >= self._next_refusal:
            self._next_refusal = now + _REFUSAL_PAUSE
            self._observer.warn("token_refused", provider=self._owner, instead="dragoman requests another token")
            self._start(now)
        if self._lines == refused:
            await self._wait_for_refresh()
        return None if self._lines == refused or monotonic() >= self._expiry else self._lines

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _start(self, now: float) -> None:
        if self._task is None and now >= self._next_try:
            self._task = asyncio.get_running_loop().create_task(self._refresh(now))

    async def _wait_for_refresh(self) -> None:
        """Wait for the end of the running refresh, if there is one."""
        if (task := self._task) is not None:
            await asyncio.wait((task,))
            if not task.cancelled():
                task.result()

    async def _refresh(self, began: float) -> None:
        try:
            token = await self._fetch()
        except NoToken as failure:
            self._record_failure(failure)
        else:
            self._observer.add_secret(self._owner, token.secret)
            self._lines = render_headers(self.templates, token.secret)
            self._expiry = began + token.life
            self._aging = began + token.life * 2 / 3
            self._failures = 0
        finally:
            self._task = None

    def _record_failure(self, failure: NoToken) -> None:
        first, longest = self._pauses
        pause = min(first * 2 ** min(self._failures, 16), longest) * uniform(0.75, 1.0)
        now = monotonic()
        self._next_try = now + pause
        self._failures += 1
        self._failure = failure
        left = max(0, round(self._expiry - now)) if self._lines else 0
        said = {"reason": failure.reason, "detail": failure.detail} if failure.detail else {"reason": failure.reason}
        self._observer.warn("no_token", provider=self._owner, **said, again_in=round(pause, 1), token_valid_for=left)

    def _create_fault(self) -> Fault:
        text = f"{self._owner}: no access token: {self._failure.reason}"
        if self._failure.refused:
            return Fault("upstream_auth_failed", text, code="upstream_auth_unavailable")
        wait = float(round(max(1.0, self._next_try - monotonic())))
        return Fault("upstream_unavailable", text, code="upstream_auth_unavailable", retry_after=wait)


class TokenEndpoint:
    """Asks a provider's token endpoint, through the provider's HTTP proxy if it has one.

    Its certificate is checked against `oauth.ca`, the provider's own `tls` if both have the same address, else the
    system's authorities. Raises OSError for TLS files that cannot be used, and OSError or BadKeyFile for a file that
    holds no secret. `add_secret` is called with the secret in that file.
    """

    def __init__(
        self, provider: Provider, oauth: OAuth, add_secret: Callable[[str], Any] = lambda secret: None
    ) -> None:
        self._url = URL(oauth.token_url, encoded=True)
        self._oauth = oauth
        self._add_secret = add_secret
        add_secret(_read_secret(oauth))
        self._headers = {"Accept": "application/json"}
        proxy = None if provider.proxy is None else URL(provider.proxy.get_secret_value())
        self._proxy, self._proxy_headers = split_credentials(proxy)
        if self._url.scheme == "http":  # there is no tunnel then, and the proxy reads the call's own headers
            self._headers |= self._proxy_headers
        proxies = () if proxy is None else (str(proxy),)
        self._ssl = create_tls_context(_choose_tls(provider, oauth), oauth.token_url, *proxies)

    async def __call__(self) -> Token:
        """Raises NoToken."""
        try:
            secret = await asyncio.to_thread(_read_secret, self._oauth)
        except (OSError, BadKeyFile) as error:
            why = error.strerror or "unreadable" if isinstance(error, OSError) else str(error)
            raise NoToken("the client's secret cannot be read from its file", detail=why) from error
        self._add_secret(secret)
        try:
            async with asyncio.timeout(_TIMEOUT):
                status, body = await self._request_token(secret)
        except CLIENT_ERRORS as error:
            raise NoToken(f"the token endpoint: {describe_error(error).text}") from error
        return _parse_token(status, body)

    async def _request_token(self, secret: str) -> tuple[int, bytes]:
        connector = aiohttp.TCPConnector(ssl=self._ssl, resolver=aiohttp.ThreadedResolver())
        timeout, jar = aiohttp.ClientTimeout(total=None), aiohttp.DummyCookieJar()
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=jar) as session,
            session.post(
                self._url,
                data=_write_form(self._oauth, secret),
                headers={**self._headers, **_write_basic_auth(self._oauth, secret)},
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                allow_redirects=False,
            ) as response,
        ):
            body = b""
            async for part in response.content.iter_any():
                body += part
                if len(body) > _REPLY_LIMIT:
                    raise NoToken("the token endpoint's answer is larger than 256 KiB")
            return response.status, body


def _read_secret(oauth: OAuth) -> str:
    """Raises OSError, BadKeyFile."""
    if oauth.client_secret_file is not None:
        return read_key(Path(oauth.client_secret_file))
    return "" if oauth.client_secret is None else oauth.client_secret.get_secret_value()


def _write_form(oauth: OAuth, secret: str) -> dict[str, str]:
    form = {"grant_type": "client_credentials"}
    if oauth.auth_style == "body":
        form |= {"client_id": oauth.client_id, "client_secret": secret}
    optional = {"scope": oauth.scope, "audience": oauth.audience}
    return form | {name: value for name, value in optional.items() if value is not None}


def _write_basic_auth(oauth: OAuth, secret: str) -> dict[str, str]:
    """RFC 6749, 2.3.1: both parts are form-encoded first."""
    if oauth.auth_style == "body":
        return {}
    pair = f"{quote_plus(oauth.client_id)}:{quote_plus(secret)}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _choose_tls(provider: Provider, oauth: OAuth) -> Tls:
    if oauth.ca is not None:
        return Tls(ca=oauth.ca)
    one_address = urlsplit(oauth.token_url)[:2] == urlsplit(provider.base_address)[:2]
    return provider.tls if one_address else Tls()


def _parse_token(status: int, body: bytes) -> Token:
    try:
        said = read_any(body)
    except ValueError:
        said = None
    if not 200 <= status < 300 or not isinstance(said, dict):
        raise _create_refusal(status, said if isinstance(said, dict) else {})
    secret, kind = said.get("access_token"), said.get("token_type", "Bearer")
    if not isinstance(secret, str) or not _TOKEN.fullmatch(secret):
        raise NoToken("the token endpoint's answer holds no access_token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise NoToken("the token endpoint gives tokens of another type than Bearer", refused=True)
    return Token(secret, _parse_life(said.get("expires_in")))


def _parse_life(given: Any) -> float:
    """Some endpoints write the number as text."""
    if given is None:
        return _DEFAULT_LIFE
    try:
        life = int(given)
    except (TypeError, ValueError, OverflowError):
        life = 0
    if life <= 0:
        raise NoToken("the token endpoint gives a token that has expired, or says no proper expires_in")
    return float(min(life, 10**9))


def _create_refusal(status: int, said: Mapping[str, Any]) -> NoToken:
    word, detail = said.get("error"), said.get("error_description")
    shown = f" ({word})" if isinstance(word, str) and _WORD.fullmatch(word) else ""
    if status < 300:
        return NoToken("the token endpoint's answer is not a JSON object")
    if status < 400:
        return NoToken("the token endpoint redirects, which is not followed", refused=True)
    refused = status < 500 and status not in (408, 429)
    text = f"the token endpoint answered {status}{shown}"
    return NoToken(text, refused, detail[:500] if isinstance(detail, str) else "")
