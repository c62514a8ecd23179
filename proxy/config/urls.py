"""Checks of the addresses of providers and HTTP proxies."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

__all__ = ["BadUrl", "check_base_url", "check_proxy_url", "is_loopback"]

_PATH = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")
_DOTS = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)
_ENCODE = "percent-encode special characters in the password"
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")


@dataclass
class BadUrl(Exception):
    """The address is invalid. The texts never quote it, because it may contain a password."""

    message: str
    expected: str = ""
    hint: str = ""


def check_base_url(url: str) -> str:
    """Return the address unchanged. Raises BadUrl unless it is `http(s)://host[:port][/path]`."""
    form = "https://host[:port][/path]"
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise BadUrl("the address contains a space, a backslash, or characters other than ASCII", form)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadUrl("the address has a bad host or port", form) from None
    if parts.scheme not in ("http", "https") or not url.lower().startswith(f"{parts.scheme}://"):
        raise BadUrl("the address does not begin with https:// or http://", form)
    host = parts.netloc.rpartition("@")[2]
    if "@" in parts.netloc:
        raise BadUrl("the address contains a user name or password", form, "put the credential into api_key")
    if not parts.hostname or port == 0 or not _HOST.fullmatch(host.removesuffix(f":{port}")):
        raise BadUrl("the address has a bad host or port", form)
    if "?" in url or "#" in url:
        raise BadUrl("the address has a query or a fragment", form, "remove the ? or #, and what follows")
    if not _PATH.fullmatch(parts.path) or any(_DOTS.fullmatch(part) for part in parts.path.split("/")):
        raise BadUrl("the path of the address contains . or .., or characters that must be percent-encoded", form)
    return url


def check_proxy_url(url: str) -> None:
    """Raises BadUrl unless this is `http://[user[:password]@]host[:port]`."""
    form = "http://host:port, with user:password@ before the host if the proxy requires them"
    if url.startswith("https://"):
        raise BadUrl("https to the proxy itself is not supported", form)
    plain = url.isascii() and url.isprintable() and not set(url) & set(" \\\"'<>`{}|^")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        plain = False
    host = parts.netloc.rpartition("@")[2] if plain else ""
    if not plain or parts.scheme != "http" or port == 0 or not _HOST.fullmatch(host.removesuffix(f":{port}")):
        raise BadUrl("this is not the address of an HTTP proxy", form, _ENCODE)
    if ":" in unquote(parts.username or ""):
        raise BadUrl("the user name in the address of the proxy contains a colon, which HTTP does not allow", form)
    if parts.path not in ("", "/") or "?" in url or "#" in url or parts.netloc.count("@") > 1:
        raise BadUrl("the address of the proxy has text after the port", form, _ENCODE)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host; `host` is a name or an IP address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
