"""Faults: errors with an owner, a kind, a path and a status.

    Fault
     |- client    the request is wrong             invalid_request 400, unsupported_parameter 400, extra_parameter 400,
     |                                             unprocessable 422, auth 401, forbidden 403, not_found 404,
     |                                             model_not_found 404, method_not_allowed 405, request_timeout 408,
     |                                             too_large 413, unsupported_media_type 415, content_filter 400
     |- provider  the upstream failed              rate_limit 429, upstream_timeout 504, upstream_unavailable 503,
     |                                             upstream_unreachable 502, upstream_invalid_response 502,
     |                                             upstream_auth_failed 502, permission 502, upstream_error 500
     '- proxy     dragoman failed, or is stopping     overloaded 503, internal 500

The client's dialect renders a fault (`write_fault`); a provider's dialect recognizes one (`read_fault`). `path` is the
path in the form in which the fault was found; `Fault.locate` turns it into the path that the client wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .changes import Receipt
from .paths import Path, format_path, trim_path

__all__ = ["KINDS", "MOST_REASONS", "Fault", "Kind", "Owner", "join_faults"]

Owner: TypeAlias = Literal["client", "provider", "proxy"]
Kind: TypeAlias = Literal[
    "invalid_request",
    "unsupported_parameter",
    "extra_parameter",
    "unprocessable",
    "auth",
    "forbidden",
    "not_found",
    "model_not_found",
    "method_not_allowed",
    "request_timeout",
    "too_large",
    "unsupported_media_type",
    "content_filter",
    "rate_limit",
    "upstream_timeout",
    "upstream_unavailable",
    "upstream_unreachable",
    "upstream_invalid_response",
    "upstream_auth_failed",
    "permission",
    "upstream_error",
    "overloaded",
    "internal",
]

KINDS: dict[Kind, tuple[Owner, int]] = {
    "invalid_request": ("client", 400),
    "unsupported_parameter": ("client", 400),
    "extra_parameter": ("client", 400),
    "unprocessable": ("client", 422),
    "auth": ("client", 401),
    "forbidden": ("client", 403),
    "not_found": ("client", 404),
    "model_not_found": ("client", 404),
    "method_not_allowed": ("client", 405),
    "request_timeout": ("client", 408),
    "too_large": ("client", 413),
    "unsupported_media_type": ("client", 415),
    "content_filter": ("client", 400),
    "rate_limit": ("provider", 429),
    "upstream_timeout": ("provider", 504),
    "upstream_unavailable": ("provider", 503),
    "upstream_unreachable": ("provider", 502),
    "upstream_invalid_response": ("provider", 502),
    "upstream_auth_failed": ("provider", 502),
    "permission": ("provider", 502),
    "upstream_error": ("provider", 500),
    "overloaded": ("proxy", 503),
    "internal": ("proxy", 500),
}

_LONGEST_VALUE = 4096  # characters of a text that is kept as the value at fault; less is shown
MOST_REASONS = 32
"""The most reasons that one refusal gives."""


@dataclass(eq=False)
class Fault(Exception):
    """An error that can be shown to a client in its own dialect.

    `code` is a more precise machine-readable word than the kind (`invalid_json`, `upstream_truncated`, ...),
    `provider_code` the provider's own code, `details` the useful parts of the provider's body, `retry_after` a time in
    seconds. `status` 0 means the status of the kind. `answered` is the HTTP status of the provider's response, 0
    without one. `may_have_begun` says that the provider may have worked on the request although it did not answer,
    `is_exhausted` that further tries are of no use for now. `place` is the path in the canonical request, if a target
    refuses the request; `others` are the further reasons for the same refusal.
    """

    kind: Kind
    message: str
    path: Path = ()
    value: Any = None
    status: int = 0
    code: str | None = None
    provider_code: str | None = None
    details: Any = None
    retry_after: float | None = None
    answered: int = 0
    place: Path = ()
    others: tuple[Fault, ...] = ()
    may_have_begun: bool = False
    is_exhausted: bool = False

    def __post_init__(self) -> None:
        self.message = _replace_surrogates(self.message)
        if isinstance(self.value, str):
            self.value = _replace_surrogates(self.value[:_LONGEST_VALUE])
        super().__init__(self.message)
        self.status = self.status or KINDS[self.kind][1]

    @property
    def owner(self) -> Owner:
        """Who has to act: the client, the provider, or whoever runs the proxy."""
        return KINDS[self.kind][0]

    @property
    def is_final(self) -> bool:
        """Whether the same request fails at this provider until somebody changes an account or a configuration."""
        return self.kind in ("upstream_auth_failed", "permission") or self.code == "insufficient_quota"

    @property
    def reasons(self) -> tuple[Fault, ...]:
        """The fault itself and the further reasons for the same refusal."""
        return (self, *self.others)

    @property
    def param(self) -> str | None:
        """The path as OpenAI writes it, `messages[0].content`; None if there is none."""
        return format_path(self.path) or None

    def locate(self, receipt: Receipt, written: dict[str, Any] | None = None, *, known: Collection[str] = ()) -> Fault:
        """Turn the path into the one that the client wrote, and return the fault itself.

        A message that begins with the path gets the client's path too. `written` is the client's body, if it is known:
        what a provider names may not exist in it, and then the path ends before that. `known` are parameters that the
        provider may name although the client left them out: those of the protocol that both speak.
        """
        shown, self.path = format_path(self.path), receipt.unmap(self.path)
        if written is not None:
            self.path = trim_path(written, self.path) or tuple(name for name in self.path[:1] if name in known)
        if shown and self.message.startswith(f"{shown} "):
            self.message = f"{format_path(self.path) or 'The request'}{self.message[len(shown) :]}"
        return self

    def __str__(self) -> str:
        return f"{self.kind} ({self.status}): {self.message}"


def _replace_surrogates(text: str) -> str:
    """Replace what no JSON text can hold: bytes of a header that are not UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def join_faults(faults: Iterable[Fault]) -> Fault:
    """Return the first fault, with up to 31 faults at other paths as its `others`. There must be one."""
    found: dict[Path, Fault] = {}
    for fault in faults:
        found.setdefault(fault.path, fault)
        if len(found) == MOST_REASONS:
            break
    first, *others = found.values()
    first.others = (*others,)
    return first
