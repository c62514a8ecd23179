"""Base addresses: what one may look like, and what each dialect appends to it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

__all__ = ["APPENDED", "BadUrl", "check_base_url", "check_proxy_url", "is_loopback", "overlap"]

APPENDED: Mapping[str, str] = {
    "openai": "/chat/completions",
    "databricks": "/serving-endpoints/<model>/invocations",
    "azure": "/chat/completions",
    "mindie": "/v1/chat/completions",
    "azure-openai": "/openai/deployments/<model>/chat/completions",
}
"""What a dialect, or an address form of one, puts behind the base address of a provider, to call chat."""

_TAILS: Mapping[str, re.Pattern[str]] = {
    "openai": re.compile(r"(?<=/v1)/v1$|/chat(/completions)?$|/completions$|/embeddings$"),
    "databricks": re.compile(r"/serving-endpoints(/.*)?$"),
    "azure": re.compile(r"/chat(/completions)?$|/embeddings$"),
    "mindie": re.compile(r"/v1(/chat(/completions)?)?$"),
    "azure-openai": re.compile(r"/openai(/.*)?$"),
}
_PATH = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")
_DOTS = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")


@dataclass
class BadUrl(Exception):
    """Not a valid address. The texts never quote it, because it may contain a password."""

    message: str
    expected: str = ""
    hint: str = ""


def check_base_url(url: str) -> str:
    """The address itself, if it is `http(s)://host[:port][/path]`. Raises BadUrl."""
    form = "https://host[:port][/path]"
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise BadUrl("the address contains a space, a backslash, or characters outside ASCII", form)
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
        raise BadUrl("the address has a query or a fragment", form, "end it before the ? or #")
    if not _PATH.fullmatch(parts.path) or any(_DOTS.fullmatch(part) for part in parts.path.split("/")):
        raise BadUrl("the address has a path with . or .. in it, or with characters that must be percent-encoded", form)
    return url


def check_proxy_url(url: str) -> None:
    """Raises BadUrl unless this is `http://[user[:password]@]host[:port]`."""
    form = "http://host:port, with user:password@ before the host if the proxy requires them"
    if url.startswith("https://"):
        raise BadUrl("a proxy that is itself reached by https is not supported", form)
    plain = url.isascii() and url.isprintable() and not set(url) & set(" \\\"'<>`{}|^")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        plain = False
    host = parts.netloc.rpartition("@")[2] if plain else ""
    if not plain or parts.scheme != "http" or port == 0 or not _HOST.fullmatch(host.removesuffix(f":{port}")):
        raise BadUrl("this is not the address of an HTTP proxy", form, "percent-encode what is special in the password")
    if ":" in unquote(parts.username or ""):
        raise BadUrl("the user's name in the address of the proxy contains a colon, which HTTP cannot express", form)
    if parts.path not in ("", "/") or "?" in url or "#" in url or parts.netloc.count("@") > 1:
        raise BadUrl(
            "the address of the proxy does not end after the port",
            form,
            "percent-encode what is special in the password",
        )


def overlap(form: str, url: str) -> str | None:
    """The address without the part that a dialect, or a form of address, appends itself; None if it does not end with
    such a part."""
    bare = url.rstrip("/")
    shorter = _TAILS[form].sub("", bare)
    return None if shorter == bare else shorter


def is_loopback(host: str) -> bool:
    """True for a host that only this machine can reach, by its name or address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
