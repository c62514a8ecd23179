"""Translates between protocols, in hub form: chat and Responses, and completions over chat.

No other package handles two protocols.
"""

from __future__ import annotations

__all__: list[str] = []
