"""Makes response objects: every key that Open Responses requires, with the settings of the request."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = ["FAILURES", "fill_settings", "new_response", "to_responses_usage"]

FAILURES = frozenset({"failed", "cancelled"})
"""The statuses that a response with an error may have."""

_ECHOED: JsonObject = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "service_tier": "default",
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
"""The settings that a response repeats, with the values for those that the request omits."""

_BEGUN: JsonObject = {
    "id": None,
    "object": "response",
    "created_at": None,
    "completed_at": None,
    "status": "in_progress",
    "background": False,
    "error": None,
    "incomplete_details": None,
    "model": None,
    "output": None,
    "store": False,  # becomes true when the response is stored
    "reasoning": None,
    "usage": None,
    **_ECHOED,
}
"""A response that has just begun, for a request without settings."""

_CHAT_USAGE = frozenset(
    {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"}
)


def new_response(request: JsonObject, response_id: str, model: str, created_at: int) -> JsonObject:
    """Make the object of a response that has just begun, for a Responses request in hub form.

    `created_at` is in seconds since 1970.
    """
    made = _BEGUN.copy()
    made["id"], made["created_at"], made["model"], made["output"] = response_id, created_at, model, []
    for key in _ECHOED.keys() & request.keys():
        if request[key] is not None:
            made[key] = request[key]
    fill_settings(made)
    reasoning = request.get("reasoning")
    if reasoning is not None:
        made["reasoning"] = {"effort": None, "summary": None, **reasoning}
    return made


def fill_settings(response: JsonObject) -> None:
    """Fill the keys that a response's `text.format` and `tools` must have. Alters the response."""
    if isinstance(response["text"], dict) and response["text"] is not _ECHOED["text"]:
        response["text"] = _complete_text(response["text"])
    if isinstance(response["tools"], list):
        response["tools"] = [_complete_tool(tool) for tool in response["tools"]]


def _complete_text(text: JsonObject) -> JsonObject:
    form = text.get("format") or {"type": "text"}
    if isinstance(form, dict) and form.get("type") == "json_schema":
        form = {"description": None, **form, "strict": bool(form.get("strict"))}
    return {**{key: value for key, value in text.items() if value is not None}, "format": form}


def _complete_tool(tool: Any) -> Any:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": None, **tool}


def to_responses_usage(usage: JsonObject | None) -> JsonObject | None:
    """Convert chat's usage to the names of Responses; unknown details are 0. A provider's own keys are kept."""
    if usage is None:
        return None
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    own = {} if usage.keys() <= _CHAT_USAGE else {key: usage[key] for key in usage if key not in _CHAT_USAGE}
    return {
        **own,
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {
            **prompt,
            "cached_tokens": prompt.get("cached_tokens") or 0,
            "cache_write_tokens": prompt.get("cache_write_tokens") or 0,
        },
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {
            **completion,
            "reasoning_tokens": completion.get("reasoning_tokens") or 0,
        },
        "total_tokens": usage["total_tokens"],
    }
