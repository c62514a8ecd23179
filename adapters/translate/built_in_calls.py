"""Makes items of Responses from calls in chat of functions that replace a tool like `shell`."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path
from dragoman.adapters.responses.built_in_tools import BuiltInTool

__all__ = ["to_built_in_call"]


def to_built_in_call(
    tool: BuiltInTool, call_id: str, arguments: str, path: Path, ctx: Context, item_id: str | None = None
) -> JsonObject | None:
    """The item of a call of this tool, without a status; None if its arguments do not fit, which is recorded as a loss.

    The client then gets a function call, which says what the model wrote and which no client runs.
    """
    action = tool.decode_action(arguments)
    if action is None:
        ctx.receipt.record_conversion(path, f"the arguments do not fit the tool {tool.type}: a function call", "loss")
        return None
    ctx.receipt.record_conversion(path, f"a call of the tool {tool.type} has an item of its own type")
    return {"type": tool.call_type, "id": item_id or ctx.new_id(tool.prefix), "call_id": call_id, tool.action: action}
