"""Tools of Messages that the client runs and Anthropic defines: `bash`, the text editor and `memory`.

A request has only their type and name, since Anthropic's models know their input. Other models get functions
with a description and the schema of the input. Calls and results need no conversion: the names stay.

Sources: Anthropic, Bash tool, Text editor tool and Memory tool; anthropic 2.12.0, BetaMemoryTool20250818Command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = ["define_tool"]

_TEXT = {"type": "string"}
_COUNT = {"type": "integer"}
_RANGE = {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2}
_FILE_COMMANDS = (
    "`view` shows a file, or lists a directory; `view_range` has the first and the last line to show, -1 is the end. "
    "`create` writes `file_text` to a file. `str_replace` replaces `old_str`, which must occur exactly once, with "
    "`new_str`. `insert` inserts `{inserted}` after the line `insert_line`, 0 is the beginning."
)


def _list_file_inputs(inserted: str) -> JsonObject:
    inputs = {"path": _TEXT, "view_range": _RANGE, "file_text": _TEXT, "old_str": _TEXT, "new_str": _TEXT}
    return {**inputs, "insert_line": _COUNT, inserted: _TEXT}


def _define_commands(does: str, inputs: JsonObject, required: tuple[str, ...], *more: str) -> JsonObject:
    commands = ["view", "create", "str_replace", "insert", *more]
    schema = {
        "type": "object",
        "properties": {"command": {"type": "string", "enum": commands}, **inputs},
        "required": ["command", *required],
    }
    return {"description": does, "input_schema": schema}


_BASH: JsonObject = {
    "description": "Runs a command in a bash session on the user's machine, which keeps its state between calls, and "
    "returns what it prints. `restart` starts the session anew, and needs no command.",
    "input_schema": {"type": "object", "properties": {"command": _TEXT, "restart": {"type": "boolean"}}},
}
_OLD_EDITOR = _define_commands(
    f"Views and edits text files of the user. {_FILE_COMMANDS.format(inserted='new_str')} `undo_edit` takes back the "
    "last edit of a file.",
    _list_file_inputs("new_str"),
    ("path",),
    "undo_edit",
)
_EDITOR = _define_commands(
    f"Views and edits text files of the user. {_FILE_COMMANDS.format(inserted='insert_text')}",
    _list_file_inputs("insert_text"),
    ("path",),
)
_MEMORY = _define_commands(
    "Keeps notes for later conversations in files below `/memories`. View that directory before anything else: it may "
    f"have notes about this task. {_FILE_COMMANDS.format(inserted='insert_text')} `delete` deletes a file or a "
    "directory, and `rename` moves `old_path` to `new_path`.",
    {**_list_file_inputs("insert_text"), "old_path": _TEXT, "new_path": _TEXT},
    (),
    "delete",
    "rename",
)
_TOOLS: Mapping[str, JsonObject] = {
    "bash_20241022": _BASH,
    "bash_20250124": _BASH,
    "text_editor_20241022": _OLD_EDITOR,
    "text_editor_20250124": _OLD_EDITOR,
    "text_editor_20250429": _EDITOR,
    "text_editor_20250728": _EDITOR,
    "memory_20250818": _MEMORY,
}


def define_tool(tool: JsonObject) -> JsonObject | None:
    """A tool of Messages that says the same with a description and a schema; None if Anthropic runs the tool, or its
    input is not known."""
    kind: Any = tool.get("type")
    found = _TOOLS.get(kind) if isinstance(kind, str) else None
    if found is None or not isinstance(tool.get("name"), str):
        return None
    rest = {key: value for key, value in tool.items() if key not in _OWN_KEYS}
    return {**rest, "type": "custom", **found}


_OWN_KEYS = ("max_characters", "input_examples")  # they advise the client, or a model that knows the tool
