"""Credentials that the calls of one exchange carry: a provider that repeats them in a reply must not give them away.

Other secrets never leave the proxy, so no reply can hold them. A text of fewer than 20 characters is not masked: it may
be a word of the answer. A secret whose parts come in several events of a stream is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from dragoman.adapters.changes import Receipt

from .mask import MASK, encode_forms

__all__ = ["SentSecrets", "find_credentials", "find_secret_headers"]

_MIN_LENGTH = 20  # characters
_REASON = "the provider repeated a credential of the call: it is masked"
_SECRET_NAME = re.compile(r"auth|cookie|credential|key|passw|secret|session|signature|token", re.IGNORECASE)


def find_credentials(lines: bytes) -> tuple[bytes, ...]:
    """The secrets in header lines, in all forms that they have in JSON text."""
    values = (line.partition(":")[2] for line in lines.decode().splitlines())
    return tuple(sorted(form for value in values for form in _find_secrets(value)))


def find_secret_headers(headers: Mapping[str, str]) -> tuple[bytes, ...]:
    """The secrets in those headers of a provider whose name says that they hold one."""
    values = (value for name, value in headers.items() if _SECRET_NAME.search(name))
    return tuple(sorted(form for value in values for form in _find_secrets(value)))


class SentSecrets:
    """The credentials that were sent in one exchange."""

    __slots__ = ("_forms",)

    def __init__(self) -> None:
        self._forms: tuple[bytes, ...] = ()

    def add(self, forms: tuple[bytes, ...]) -> None:
        """Add the credentials of a call, as the functions above return them."""
        if forms != self._forms:
            self._forms = tuple({*self._forms, *forms})

    def are_in(self, data: bytes) -> bool:
        """Whether bytes have one of them."""
        for form in self._forms:  # noqa: SIM110 - a generator costs more, and this runs for every event
            if form in data:
                return True
        return False

    def mask(self, data: bytes, receipt: Receipt | None) -> bytes:
        """Mask the credentials in bytes for the client or for the store. That is a loss in the receipt."""
        for form in self._forms:
            if form in data:
                data = data.replace(form, MASK)
                if receipt is not None:
                    receipt.record_conversion((), _REASON, "loss")
        return data

    def mask_headers(self, headers: Mapping[str, str], receipt: Receipt) -> Mapping[str, str]:
        """Mask the credentials in the headers of a response."""
        if not any(form in value.encode() for form in self._forms for value in headers.values()):
            return headers
        return {name: self.mask(value.encode(), receipt).decode() for name, value in headers.items()}


def _find_secrets(value: str) -> Iterator[bytes]:
    """A header may hold a word such as Bearer before the secret."""
    for part in value.split():
        if len(part) >= _MIN_LENGTH:
            yield from {form.encode() for form in _escape_slashes(encode_forms(part))}


def _escape_slashes(forms: Iterable[str]) -> Iterator[str]:
    """JSON writers of some languages escape slashes, which the keys of some vendors have."""
    for form in forms:
        yield from (form, form.replace("/", "\\/"))
