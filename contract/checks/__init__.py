"""The closed vocabulary of checks. Each looks at one outcome and says what is wrong: nothing, where it holds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .bodies import BODIES
from .conversation import CONVERSATION
from .errors import ERRORS
from .events import EVENTS
from .rule import Rule
from .sent import SENT
from .vectors import VECTORS

__all__ = ["CHECKS", "SENT", "Rule"]

CHECKS: Mapping[str, Rule] = MappingProxyType({**BODIES, **EVENTS, **CONVERSATION, **ERRORS, **VECTORS})
"""Checks of what came back, by name. `SENT` are those of what a proxy sent upstream."""
