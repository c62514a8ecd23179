"""Finish reasons of Databricks' models that use the words of their vendors."""

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
"""The model's finish reason -> the hub's."""
