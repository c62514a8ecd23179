"""The writer of chat chunks: engine events to chunks in hub form, with reasoning, tool calls and log probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dragoman.adapters.call import JsonObject
from dragoman.local_engine.generation import Delta, Finished, TokenLogprob, Usage
from dragoman.local_engine.text.reasoning_parser import ReasoningParser
from dragoman.local_engine.text.segments import MarkerLexer, Segment, merge_segments
from dragoman.local_engine.text.tool_call_parser import ToolCallParser

from .chat_planner import ChatPlan
from .chunk_builder import ChunkBuilder, random_id, sum_usage
from .logprobs import write_chat_logprobs

__all__ = ["ChatChunkWriter", "ReplyParser"]


class ReplyParser:
    """Parses the text of one choice into segments."""

    def __init__(self, plan: ChatPlan) -> None:
        self._special_tokens = MarkerLexer(plan.hidden) if plan.hidden else None
        self._reasoning = ReasoningParser(plan.reasoning, opened=plan.reasoning_opened) if plan.reasoning else None
        self._tool_calls = ToolCallParser(plan.tool_format, plan.tool_names) if plan.tool_format else None

    @property
    def is_reasoning(self) -> bool:
        """Whether the text so far ends inside the reasoning."""
        return self._reasoning is not None and self._reasoning.is_reasoning

    def add(self, text: str) -> list[Segment]:
        if self._special_tokens is not None:
            text = "".join(lexeme.text for lexeme in self._special_tokens.add(text) if not lexeme.marker)
        return merge_segments(self._parse_tool_calls(self._parse_reasoning(text)))

    def finish(self) -> list[Segment]:
        segments = self._parse_reasoning(self._special_tokens.finish()) if self._special_tokens else []
        segments += self._reasoning.finish() if self._reasoning else []
        return merge_segments(
            [*self._parse_tool_calls(segments), *(self._tool_calls.finish() if self._tool_calls else [])]
        )

    def _parse_reasoning(self, text: str) -> list[Segment]:
        if self._reasoning is not None:
            return self._reasoning.add(text)
        return [Segment("content", text)] if text else []

    def _parse_tool_calls(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        for segment in segments:
            if segment.kind == "content" and self._tool_calls is not None:
                yield from self._tool_calls.add(segment.text)
            else:
                yield segment


class ChoiceWriter:
    """Writes the chunks of one choice."""

    def __init__(self, index: int, plan: ChatPlan, token_bytes: Callable[[int], bytes]) -> None:
        self._index = index
        self._plan = plan
        self._bytes = token_bytes
        self._parser = ReplyParser(plan)
        self._logprobs: list[TokenLogprob] = []
        self._call_count = 0
        self.reasoning_tokens = 0

    def write_start(self) -> JsonObject:
        return self._write_choice({"role": "assistant", "content": ""})

    def write_delta(self, event: Delta) -> list[JsonObject]:
        was_reasoning = self._parser.is_reasoning
        segments = self._parser.add(event.text)
        if was_reasoning or self._parser.is_reasoning:
            self.reasoning_tokens += len(event.tokens)
        self._logprobs += event.logprobs
        return self._write_segments(segments)

    def write_end(self, event: Finished) -> list[JsonObject]:
        segments = self._parser.add(event.stop) if self._plan.include_stop and isinstance(event.stop, str) else []
        chunks = self._write_segments([*segments, *self._parser.finish()])
        reason = "length" if event.reason == "length" else "stop"
        if self._call_count and reason == "stop":
            reason = "function_call" if self._plan.legacy else "tool_calls"
        return [*chunks, self._write_choice({}, reason)]

    def _write_segments(self, segments: Iterable[Segment]) -> list[JsonObject]:
        deltas = [self._write_segment(segment) for segment in segments]
        return [self._write_choice(delta) for delta in deltas if delta]

    def _write_segment(self, segment: Segment) -> JsonObject:
        if segment.kind == "content":
            return {"content": segment.text}
        if segment.kind == "reasoning":
            return {"reasoning_content": segment.text}
        return self._write_function_call(segment) if self._plan.legacy else self._write_tool_call(segment)

    def _write_tool_call(self, segment: Segment) -> JsonObject:
        if segment.kind == "arguments":
            return {"tool_calls": [{"index": self._call_count - 1, "function": {"arguments": segment.text}}]}
        self._call_count += 1
        function = {"name": segment.text, "arguments": ""}
        length = self._plan.tool_format.id_length if self._plan.tool_format else 0
        call_id = random_id(length) if length else f"call_{random_id()}"
        return {
            "tool_calls": [{"index": self._call_count - 1, "id": call_id, "type": "function", "function": function}]
        }

    def _write_function_call(self, segment: Segment) -> JsonObject:
        """Write `function_call`, which has room for one call: further calls become content."""
        if segment.kind == "call":
            self._call_count += 1
            first = {"function_call": {"name": segment.text, "arguments": ""}}
            return first if self._call_count == 1 else {"content": f"{segment.text} "}
        return {"function_call": {"arguments": segment.text}} if self._call_count == 1 else {"content": segment.text}

    def _write_choice(self, delta: JsonObject, reason: str | None = None) -> JsonObject:
        chunk: JsonObject = {"index": self._index, "delta": delta, "finish_reason": reason}
        if self._plan.logprobs:
            logprobs, self._logprobs = self._logprobs, []
            chunk["logprobs"] = write_chat_logprobs(logprobs, self._bytes) if logprobs else None
        return chunk


class ChatChunkWriter:
    """Writes the chunks of a reply: call `begin`, then `write` for each event, then `end`."""

    def __init__(self, plan: ChatPlan, model: str, token_bytes: Callable[[int], bytes]) -> None:
        self._plan = plan
        self._chunks = ChunkBuilder("chatcmpl", "chat.completion.chunk", model)
        self._choices = [ChoiceWriter(index, plan, token_bytes) for index in range(plan.generation.n)]
        self._usages: list[Usage] = []

    def begin(self) -> list[JsonObject]:
        return [self._chunks.build(choice.write_start()) for choice in self._choices]

    def write(self, event: Delta | Finished) -> list[JsonObject]:
        choice = self._choices[event.index]
        if isinstance(event, Delta):
            chunks = choice.write_delta(event)
        else:
            self._usages.append(event.usage)
            chunks = choice.write_end(event)
        return [self._chunks.build(chunk) for chunk in chunks]

    def end(self) -> list[JsonObject]:
        if not self._plan.usage:
            return []
        reasoning = sum(choice.reasoning_tokens for choice in self._choices) if self._plan.reasoning else None
        return [self._chunks.build_usage(sum_usage([self._usages], reasoning))]
