"""Tool call formats: the setting `tools` overrides the format of the chat template."""

from __future__ import annotations

import pytest

from dragoman.local_engine.text.tool_call_formats import find_tool_call_format


def test_the_setting_tools_selects_a_format() -> None:
    found = find_tool_call_format("<tool_call>", {"tools": "llama3"})
    assert found is not None and found.name == "llama3"
    assert find_tool_call_format("<tool_call>", {"tools": False}) is None


def test_an_unknown_format_is_rejected() -> None:
    with pytest.raises(ValueError, match="it must be one of mistral-args, mistral, hermes"):
        find_tool_call_format("", {"tools": "qwen"})
