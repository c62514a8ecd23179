"""What can be chosen on every level of the configuration: the file, a provider, a model, a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, get_args, get_type_hints

from .config_model import ConfigModel

__all__ = ["EmulationChoice", "PolicyChoice", "list_policies"]


class PolicyChoice(ConfigModel):
    """What to do if a request or reply does not fit. An unset policy inherits the next wider level's."""

    preset: Literal["strict", "faithful", "lenient"] | None = None
    """Sets the next four policies at once; each can still be set on its own. strict refuses what cannot be served
    exactly, and replies that break a schema; faithful refuses what would change the answer; lenient drops or clamps
    what the target does not accept, and records it as a loss. Default: faithful."""
    extra_parameters: Literal["error", "drop", "pass-through"] | None = None
    """For parameters that no dialect documents."""
    unsupported: Literal["refuse", "refuse-exactly", "drop"] | None = None
    """For known parameters that the target lacks and that would change the answer. refuse-exactly also refuses what can
    be emulated, unless the result is exact."""
    out_of_range: Literal["error", "clamp", "drop"] | None = None
    """For values beyond the target's range."""
    replies: Literal["off", "report", "repair", "strict"] | None = None
    """For replies that violate their schema: forward them, count them, repair known quirks, or reject them."""
    emulate_completions: bool | None = None
    """For a provider that is not used for completions: send the prompt as a chat message, and return the model's answer
    to it. A chat model answers the prompt instead of continuing it, which is a loss. Default: false."""
    stream_usage: Literal["ask", "leave"] | None = None
    """ask: ask the provider for the tokens of every chat and completions stream, for the log, the metrics and the
    limits; clients that did not ask do not get them. A provider that refuses is not asked again. leave: only if the
    client asks. Default: ask."""


class EmulationChoice(ConfigModel):
    """What dragoman serves itself if a target does not. An unset one inherits the next wider level's. The first four
    are true by default, the others false."""

    n: bool | None = None
    """Several choices: one call for each, at most 8. Each call is billed."""
    stop: bool | None = None
    """Stop strings: dragoman cuts the text."""
    parallel_tool_calls: bool | None = None
    """One tool call at most: of several, the client gets the first."""
    token_arrays: bool | None = None
    """Inputs of embeddings and prompts of completions as arrays of tokens: dragoman decodes them. It needs the extra
    `tokens`."""
    response_format: Literal["tool", "instruct", False] | None = None
    """JSON formats in chat and Responses. tool: the model calls a tool whose parameters are the schema; instruct: an
    instruction asks for the format, dragoman checks the answer, and asks once more if it is not valid."""
    tools: Literal["instruct", False] | None = None
    """Tools in chat and Responses. instruct: an instruction describes them, and the calls are read from the text."""
    usage: Literal["count", False] | None = None
    """Tokens that the provider does not report. count: dragoman counts them, which is an estimate. It needs the extra
    `tokens`."""
    hold_streams: bool | None = None
    """Whether a stream is held until an answer to an instruction is valid. If not, it is judged at its end. Default:
    true."""


def list_policies() -> dict[str, Mapping[str, Any]]:
    """The policies by name: the texts that set each, and the value of each text."""
    hints = get_type_hints(PolicyChoice)
    kinds = {field.name: get_args(hints[field.name])[0] for field in fields(PolicyChoice)}
    values = {name: get_args(kind) or (True, False) for name, kind in kinds.items()}
    return {name: {str(value).lower(): value for value in known} for name, known in values.items()}
