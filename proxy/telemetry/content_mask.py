"""Masking of secrets in what an exchange contained, for people who look at it.

Four things find a secret: the list of those that the configuration has, the credentials that the messages of the
exchange carried, the form of well-known vendors' keys, and the name of the header or JSON key that holds a value.

Clients and providers write these texts, so each pattern is bounded: masking takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from string import ascii_letters, digits
from typing import Any

from dragoman.proxy.config.masks import mask_secrets

from .mask import MASK, Mask, encode_forms

__all__ = ["ContentMask", "find_header_secrets", "is_secret_header"]

_STARS = MASK.decode()
_MIN_LENGTH = 8  # characters of a secret that is masked wherever it is
_NAMES = (
    r"[\w-]{0,40}(?:api[-_]?key|secret|passw|credential|private[-_]?key|(?:access|auth|bearer|refresh|id)[-_]?token"
    r"|authorization|cookie)[\w-]{0,40}"
)
_HEADER_NAME = re.compile(r"auth|cookie|credential|key|passw|secret|session|signature|token", re.IGNORECASE)
_SCHEMES = frozenset({"basic", "bearer", "digest", "negotiate", "token"})
_COUNTED = re.compile(r"^(?:x|anthropic)-ratelimit-|tokens$", re.IGNORECASE)  # names of numbers
_IN_JSON = re.compile(rf'("{_NAMES}"\s*:\s*")((?:[^"\\]|\\.)+)', re.IGNORECASE)
_IN_TEXT_OF_JSON = re.compile(rf'((?<!\\)(\\{{1,15}}"){_NAMES}\2\s*:\s*\2)(.+?)(?=\2)', re.IGNORECASE)
_IN_QUERY = re.compile(rf"([?&](?:{_NAMES}|key|token|sig)=)([^&\s\"]+)", re.IGNORECASE)
_NAMED = (('"', _IN_JSON), ("\\", _IN_TEXT_OF_JSON), ("=", _IN_QUERY))
"""The patterns, each with a sign without which it finds nothing: most texts are short."""
_IN_SECRETS = f"{ascii_letters}{digits}_+/=.~-"
_LONGEST = 4096  # characters of a secret


def is_secret_header(name: str) -> bool:
    """Whether a header with this name may hold a secret."""
    return _HEADER_NAME.search(name) is not None and _COUNTED.search(name) is None


def find_header_secrets(headers: Iterable[tuple[str, str]]) -> set[str]:
    """The secrets in headers whose name says that they hold one: the values, and the words of those of several."""
    values = (value for name, value in headers if is_secret_header(name))
    return {part for value in values for part in (value, *value.split()) if len(part) >= _MIN_LENGTH}


class ContentMask:
    """Masks texts of one exchange. `secrets` are those that its messages carried."""

    def __init__(self, mask: Mask, secrets: Iterable[str] = ()) -> None:
        self._mask = mask
        forms = {form for secret in secrets for form in encode_forms(secret)}
        pattern = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
        self._sent = re.compile(pattern) if pattern else None

    def mask_text(self, text: str, *, is_cut: bool = False) -> str:
        """The text without secrets. A text that `is_cut` loses its last word, which may be the beginning of one."""
        text = self._mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        if self._sent is not None:
            text = self._sent.sub(_STARS, text)
        text = mask_secrets(text)
        for sign, pattern in _NAMED:
            if sign in text:
                text = pattern.sub(rf"\1{_STARS}", text)
        return text[:-_LONGEST] + text[-_LONGEST:].rstrip(_IN_SECRETS) if is_cut else text

    def mask_header(self, name: str, value: str) -> str:
        """The header's value without secrets. What comes before the secret, such as Bearer, remains."""
        if not is_secret_header(name):
            return self.mask_text(value)
        scheme, space, _ = value.partition(" ")
        return f"{scheme} {_STARS}" if space and scheme.lower() in _SCHEMES else _STARS

    def mask_values(self, value: Any) -> Any:
        """A copy of JSON without secrets in its texts and keys."""
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, Mapping):
            return {self.mask_text(str(name)): self.mask_values(each) for name, each in value.items()}
        return [self.mask_values(each) for each in value] if isinstance(value, (list, tuple)) else value
