"""Holds a reply to its request: what the client asked for, and what came. `create_reply_check` is the entry, and
`keeps_to_limit` the short way of most replies."""

from __future__ import annotations

from .check import Mismatch, ReplyCheck
from .checks import create_reply_check, keeps_to_limit

__all__ = ["Mismatch", "ReplyCheck", "create_reply_check", "keeps_to_limit"]
