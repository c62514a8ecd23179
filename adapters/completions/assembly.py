"""Assembles the chunks of a completions stream into a whole reply, for a client that asked for no stream."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.choice_assembly import assemble_choices, merge_lists

__all__ = ["assemble_text"]


def assemble_text(chunks: Sequence[JsonObject]) -> JsonObject:
    """The hub reply of a stream's hub chunks, of which there is at least one. The inverse of `restream_text`."""
    return assemble_choices(chunks, "text_completion", _make_choice, _add_piece)


def _make_choice(index: int) -> JsonObject:
    return {"index": index, "text": "", "logprobs": None, "finish_reason": None}


def _add_piece(choice: JsonObject, piece: JsonObject) -> None:
    for key, value in piece.items():
        if key == "text":
            choice["text"] += value or ""
        elif key == "logprobs" and value is not None:
            choice["logprobs"] = merge_lists(choice["logprobs"], value)
        elif value is not None:
            choice[key] = value
