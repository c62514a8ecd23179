"""The formats of tool calls, one per model family. The chat template shows which format a model uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["TOOL_CALL_FORMATS", "ToolCallFormat", "find_tool_call_format"]


@dataclass(frozen=True, slots=True)
class ToolCallFormat:
    """The syntax of tool calls.

    `open` and `close` are the markers around a payload; a reply that starts with `bare` is a payload without markers.
    Payloads: `objects` are JSON objects with a name and `arguments`, `named` is `name[ARGS]{...}`, `python` is a list
    of calls in Python syntax. The parser skips the characters of `separators` around objects. A grammar writes `joiner`
    between two objects, and `prefix` and `suffix` inside the markers. A template that contains all
    strings of one of `template_hints` uses this format.
    """

    name: str
    payload: Literal["objects", "named", "python"]
    template_hints: tuple[tuple[str, ...], ...]
    open: str = ""
    close: str = ""
    bare: str = ""
    separators: str = ""
    joiner: str = ""
    prefix: str = ""
    suffix: str = ""
    arguments: str = "arguments"
    id_length: int = 0

    @property
    def markers(self) -> tuple[str, ...]:
        return tuple(marker for marker in (self.open, self.close) if marker)


MISTRAL_ID = 9
TOOL_CALL_FORMATS: tuple[ToolCallFormat, ...] = (
    ToolCallFormat("mistral-args", "named", (("[TOOL_CALLS]", "[ARGS]"),), open="[TOOL_CALLS]", id_length=MISTRAL_ID),
    ToolCallFormat(
        "mistral",
        "objects",
        (("[TOOL_CALLS]",),),
        open="[TOOL_CALLS]",
        separators="[,]",
        joiner=", ",
        prefix="[",
        suffix="]",
        id_length=MISTRAL_ID,
    ),
    ToolCallFormat(
        "hermes", "objects", (("<tool_call>",),), open="<tool_call>", close="</tool_call>", prefix="\n", suffix="\n"
    ),
    ToolCallFormat(
        "pythonic", "python", (("<|python_start|>",),), open="<|python_start|>", close="<|python_end|>", bare="["
    ),
    ToolCallFormat(
        "llama3",
        "objects",
        (("<|python_tag|>",), ('"parameters"', "tools"), ("dictionary of argument name and its value", "tools")),
        open="<|python_tag|>",
        bare="{",
        separators=";",
        joiner="; ",
        arguments="parameters",
    ),
    ToolCallFormat("pythonic", "python", (("[func_name1(",), ("pythonic", "tools")), bare="["),
)


def find_tool_call_format(template: str, settings: Mapping[str, Any]) -> ToolCallFormat | None:
    """Find a folder's format: the one that `tools` in dragoman.json names, else that of the template; None if unknown.

    Raises ValueError for an unknown name.
    """
    given = settings.get("tools")
    if given is False:
        return None
    if given is not None:
        found = next((tool_format for tool_format in TOOL_CALL_FORMATS if tool_format.name == given), None)
        if found is None:
            known = ", ".join(dict.fromkeys(tool_format.name for tool_format in TOOL_CALL_FORMATS))
            raise ValueError(f"tools is {given!r}; it must be one of {known}, or false for no tool calls")
        return found
    return next(
        (
            tool_format
            for tool_format in TOOL_CALL_FORMATS
            for hints in tool_format.template_hints
            if all(hint in template for hint in hints)
        ),
        None,
    )
