"""The closed vocabulary of checks. A check reads one outcome and returns its problems; none means that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .bodies import BODY_CHECKS
from .content import CONTENT_CHECKS
from .embeddings import EMBEDDING_CHECKS
from .errors import ERROR_CHECKS
from .rule import Rule
from .streams import STREAM_CHECKS
from .upstream_requests import UPSTREAM_CHECKS

__all__ = ["REPLY_CHECKS", "UPSTREAM_CHECKS", "Rule"]

REPLY_CHECKS: Mapping[str, Rule] = MappingProxyType(
    {**BODY_CHECKS, **STREAM_CHECKS, **CONTENT_CHECKS, **ERROR_CHECKS, **EMBEDDING_CHECKS}
)
"""Checks of a reply, by name. `UPSTREAM_CHECKS` are checks of the requests that a proxy sends upstream."""
