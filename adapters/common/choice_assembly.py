"""Assembles chunks with choices into a whole reply, for chat and completions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dragoman.adapters.call import JsonObject

__all__ = ["assemble_choices", "merge_lists"]


def assemble_choices(
    chunks: Sequence[JsonObject],
    kind: str,
    make_choice: Callable[[int], JsonObject],
    add_piece: Callable[[JsonObject, JsonObject], None],
) -> JsonObject:
    """The hub reply of hub chunks, of which there is at least one. `kind` is its `object`.

    `make_choice` makes an empty choice with an index, `add_piece` adds a choice of a chunk to it. Of every other key of
    the chunks the last value counts that is not null.
    """
    reply: JsonObject = {}
    choices: dict[int, JsonObject] = {}
    for chunk in chunks:
        reply.update({key: value for key, value in chunk.items() if value is not None})
        for piece in chunk["choices"]:
            index = piece["index"]
            if index not in choices:
                choices[index] = make_choice(index)
            add_piece(choices[index], piece)
    return {**reply, "object": kind, "choices": [choice for _, choice in sorted(choices.items())]}


def merge_lists(before: JsonObject | None, more: JsonObject) -> JsonObject:
    """Log probabilities so far and those of one more piece: the lists are extended."""
    merged = dict(before or {})
    for key, value in more.items():
        known = merged.get(key)
        merged[key] = (
            known + value if isinstance(known, list) and isinstance(value, list) else known if value is None else value
        )
    return merged
