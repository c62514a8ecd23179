"""What all dialects with Messages share: the request check, the reply normalizer, the stream reader and the writer."""

from __future__ import annotations

__all__: list[str] = []
