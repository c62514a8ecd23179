"""Between the two conversation protocols, chat and Responses, in hub form. Nothing else knows both."""

from __future__ import annotations

__all__: list[str] = []
