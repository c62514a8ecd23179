"""Recognizes pieces of text by their bytes although the provider pads its events.

Anthropic puts spaces before the last brace of an event, a different number in each, so that the length of an encrypted
event does not show that of its text. The padding goes on to the client.

Source: event streams of Anthropic's API, as in BerriAI/litellm#5231.
"""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.chunk_template import ChunkTemplate
from dragoman.adapters.paths import Path
from dragoman.adapters.streams import Chunk, DeltaRun

__all__ = ["PaddedTemplate"]

_PADDED = b" }"
_PADDED_END = b" }\n\n"


class PaddedTemplate(ChunkTemplate):
    """A template of events that may have spaces before their last brace."""

    __slots__ = ()

    @classmethod
    def learn(cls, body: JsonObject, raw: bytes, same: bool, path: Path, begin: bytes = b"") -> ChunkTemplate | None:
        """Make the template as the base class does."""
        return super().learn(body, _strip(raw), same, path, begin)

    def match(self, raw: bytes) -> Chunk | None:
        """The chunk in the data of one event; None if the bytes do not match."""
        chunk = super().match(_strip(raw))
        if chunk is not None and chunk.raw is not None:
            chunk.raw = raw
        return chunk

    def match_run(self, data: bytes, at: int) -> tuple[DeltaRun, int] | None:
        """The run of matching events that begins at the offset `at`, and the offset after it; None if there is none."""
        found = None if data.endswith(_PADDED_END) else super().match_run(data, at)
        if found is not None or not data.startswith(self._head, at):
            return found
        blocks = self._split(data, at)
        texts = self._match_texts([*map(_strip, blocks)])
        if not texts:
            return None
        around = len(self._begin) + len(_PADDED_END) - len(_PADDED)
        end = at + sum(len(block) + around for block in blocks[: len(texts)])
        return self._make_run(data[at:end], texts, end)


def _strip(raw: bytes) -> bytes:
    """The JSON text of an object without spaces before its last brace."""
    return raw[:-1].rstrip(b" ") + b"}" if raw.endswith(_PADDED) else raw
