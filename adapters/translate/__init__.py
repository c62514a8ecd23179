"""Between protocols, in hub form: chat and Responses, and completions over chat. Nothing else knows two of them."""

from __future__ import annotations

__all__: list[str] = []
