"""How Databricks' models say why they stopped, where they say it in the words of whoever made them."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FINISH"]

FINISH: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "STOP": "stop",
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "tool_use": "tool_calls",
    "SAFETY": "content_filter",
    "refusal": "content_filter",
}
"""Their word -> the hub's."""
