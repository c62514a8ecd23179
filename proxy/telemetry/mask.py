"""Masking of secrets in everything that dragoman writes, and the list of the configuration's secrets."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote_plus, unquote, urlsplit

import orjson

from dragoman.proxy.config.masks import is_secret
from dragoman.proxy.config.models import Config

__all__ = ["MASK", "Mask", "collect_secrets", "encode_forms"]

MASK = b"***"
"""What masked secrets become."""

_MAX_ADDED = 4  # the latest secrets of one owner that are masked
_MIN_LENGTH = 8  # characters of a text that is masked


class Mask:
    """Replaces secrets in bytes with `***`: those given, and those added while the proxy runs.

    Texts of fewer than 8 characters are not masked: placeholder keys, for servers that require none, are that short,
    and masking them would remove ordinary words from replies.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._given = tuple(secrets)
        self._added: dict[str, tuple[str, ...]] = {}
        self._compile()

    def set_secrets(self, secrets: Iterable[str]) -> None:
        """Mask these secrets instead of those that were given before."""
        given = tuple(secrets)
        if given != self._given:
            self._given = given
            self._compile()

    def add_secret(self, owner: str, secret: str) -> None:
        """Mask this secret too. It replaces the owner's last one, which may still be in use, so the latest four of each
        owner are masked."""
        known = self._added.get(owner, ())
        if secret not in known:
            self._added[owner] = (*known, secret)[-_MAX_ADDED:]
            self._compile()

    def _compile(self) -> None:
        secrets = (*self._given, *(secret for known in self._added.values() for secret in known))
        forms = {form for secret in secrets if len(secret) >= _MIN_LENGTH for form in encode_forms(secret)}
        pattern = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
        self._pattern = re.compile(pattern.encode()) if pattern else None

    def __call__(self, data: bytes) -> bytes:
        return data if self._pattern is None else self._pattern.sub(MASK, data)


def collect_secrets(config: Config) -> list[str]:
    """Every secret that the configuration contains."""
    found = [key.key.get_secret_value() for key in config.keys if key.key is not None]
    if config.server.admin_key is not None:
        found.append(config.server.admin_key.get_secret_value())
    for provider in config.providers.values():
        given = {"api_key": provider.api_key, **provider.parameters}
        if (oauth := provider.oauth) is not None and oauth.client_secret is not None:
            given["client_secret"] = oauth.client_secret
            secret = oauth.client_secret.get_secret_value()
            found.append(_encode_pair(quote_plus(oauth.client_id), quote_plus(secret)))
        found += [secret.get_secret_value() for name, secret in given.items() if secret and is_secret((name,))]
    return [*found, *_header_values(config), *_proxy_passwords(config)]


def encode_forms(secret: str) -> Iterator[str]:
    """The secret itself, as JSON text holds it, and as JSON text inside JSON text holds it."""
    for _ in range(3):
        yield secret
        secret = orjson.dumps(secret).decode()[1:-1]


def _header_values(config: Config) -> Iterator[str]:
    """Any header of a provider may be a secret, or hold one after a word such as Bearer."""
    for provider in config.providers.values():
        for value in provider.headers.values():
            yield from (value, value.partition(" ")[2])


def _proxy_passwords(config: Config) -> Iterator[str]:
    """Percent-encoded, as in the address, decoded, and as basic authentication sends them."""
    for provider in config.providers.values():
        if provider.proxy is not None and (password := (parts := urlsplit(provider.proxy.get_secret_value())).password):
            yield from (password, unquote(password), _encode_pair(unquote(parts.username or ""), unquote(password)))


def _encode_pair(user: str, password: str) -> str:
    return b64encode(f"{user}:{password}".encode()).decode()
