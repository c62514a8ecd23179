"""Masking of secrets in reports and recordings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["MASKED", "Mask"]

MASKED = "***"
_SECRET_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "cookie", "set-cookie", "proxy-authorization"})


class Mask:
    """Replaces the given secrets in texts, and the values of headers that carry credentials."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASKED)
        return text

    def mask_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: MASKED if name.lower() in _SECRET_HEADERS else self(value) for name, value in headers.items()}
