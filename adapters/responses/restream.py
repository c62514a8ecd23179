"""A whole response as the events of a stream, for a provider that answers whole although a stream was asked for."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject

__all__ = ["restream_response"]

_TERMINAL = {"completed": "response.completed", "incomplete": "response.incomplete"}


def restream_response(response: JsonObject) -> list[JsonObject]:
    """Hub events that add up to a hub response."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    begun["incomplete_details"] = begun["error"] = None
    events: list[JsonObject] = [
        {"type": kind, "response": begun} for kind in ("response.created", "response.in_progress")
    ]
    for index, item in enumerate(response["output"]):
        for kind in ("response.output_item.added", "response.output_item.done"):
            events.append({"type": kind, "output_index": index, "item": item})
    terminal = _TERMINAL.get(response["status"], "response.failed")
    return [*events, {"type": terminal, "response": response}]
