"""The check of Messages: where a request says what it wants, and a message what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.messages.endings import FINISH_REASONS
from dragoman.adapters.request_properties import HUB_MESSAGES, TOKEN_LIMITS
from dragoman.adapters.streams import DeltaRun

from .check import ChoiceRecord, Mismatch, ReplyCheck, Wishes, list_objects, read_stop

__all__ = ["MessagesCheck"]


class MessagesCheck(ReplyCheck):
    """The check of Messages."""

    def __init__(self, request: JsonObject, *, judges_schema: bool, has_wishes: bool) -> None:
        super().__init__(request, judges_schema=judges_schema, has_wishes=has_wishes)
        self._record = ChoiceRecord()

    def read_wishes(self, request: JsonObject) -> Wishes:
        """Read them from the request."""
        choice = request.get("tool_choice") or {}
        config = request.get("output_config") or {}
        form = config.get("format") or request.get("output_format")
        return Wishes(
            tool={"any": "", "tool": choice.get("name")}.get(str(choice.get("type"))),
            no_tool=choice.get("type") == "none",
            one_call=choice.get("disable_parallel_tool_use") is True,
            format=("output_config", "format") if form else None,
            schema=form.get("schema") if form else None,
            stop=read_stop(request.get("stop_sequences")),
            one_call_path=("tool_choice", "disable_parallel_tool_use"),
            stop_path=("stop_sequences",),
        )

    def add_reply(self, reply: JsonObject) -> None:
        """Take a whole message."""
        for block in list_objects(reply.get("content")):
            self._add_block(block)
        self._add_ending(reply, reply.get("usage"))

    def add_chunk(self, chunk: JsonObject) -> None:
        """Take one event."""
        if isinstance(block := chunk.get("content_block"), dict):
            self._add_block(block)
        elif isinstance(delta := chunk.get("delta"), dict):
            if isinstance(text := delta.get("text"), str):
                self._record.text.add(text)
            elif "stop_reason" in delta:
                self._add_ending(delta, chunk.get("usage"))

    def add_run(self, run: DeltaRun) -> None:
        """Take coalesced texts of one block."""
        if run.place[-1] == "text" and self.wishes.need_text:
            self._record.text.add_fragments(run.texts)

    def find_mismatches(self) -> Iterator[Mismatch]:
        """Compare the message and its tokens."""
        if self.has_wishes:
            yield from self.compare_choice(self._record)
        for name in TOKEN_LIMITS[HUB_MESSAGES]:
            yield from self.compare_tokens((name,), self.request.get(name), self.usage.get("output_tokens"), 1)

    def _add_block(self, block: JsonObject) -> None:
        if block.get("type") == "tool_use":
            self._record.calls.append(str(block.get("name")))
        elif block.get("type") == "text" and isinstance(text := block.get("text"), str):
            self._record.text.add(text)

    def _add_ending(self, holder: JsonObject, usage: Any) -> None:
        if isinstance(usage, dict):
            self.usage = usage
        self._record.finish = FINISH_REASONS.get(str(holder.get("stop_reason")))
