"""The engine's events as the hub's chat chunks: reasoning and tool calls told apart, log probabilities alongside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dragoman.adapters.call import JsonObject

from .envelope import Envelope, random_id, usage
from .logprobs import chat_logprobs
from .pieces import Lexer, Piece, joined
from .planning import Plan
from .reasoning import Splitter
from .requests import Delta, Finished, TokenLogprob, Usage
from .toolcalls import ToolCalls

__all__ = ["ChatWriter", "Reader"]


class Reader:
    """The text of one choice, through its stages. `thinking` says whether it is in the reasoning just now."""

    def __init__(self, plan: Plan) -> None:
        self._hider = Lexer(plan.hidden) if plan.hidden else None
        self._splitter = Splitter(plan.marks, opened=plan.opened) if plan.marks else None
        self._calls = ToolCalls(plan.form, plan.names) if plan.form else None

    @property
    def thinking(self) -> bool:
        return self._splitter is not None and self._splitter.thinking

    def add(self, text: str) -> list[Piece]:
        if self._hider is not None:
            text = "".join(lexeme.text for lexeme in self._hider.add(text) if not lexeme.marker)
        return joined(self._call(self._split(text)))

    def finish(self) -> list[Piece]:
        pieces = self._split(self._hider.finish()) if self._hider else []
        pieces += self._splitter.finish() if self._splitter else []
        return joined([*self._call(pieces), *(self._calls.finish() if self._calls else [])])

    def _split(self, text: str) -> list[Piece]:
        if self._splitter is not None:
            return self._splitter.add(text)
        return [Piece("content", text)] if text else []

    def _call(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            if piece.kind == "content" and self._calls is not None:
                yield from self._calls.add(piece.text)
            else:
                yield piece


class Choice:
    """One choice's chunks."""

    def __init__(self, index: int, plan: Plan, token_bytes: Callable[[int], bytes]) -> None:
        self._index = index
        self._plan = plan
        self._bytes = token_bytes
        self._reader = Reader(plan)
        self._waiting: list[TokenLogprob] = []
        self._calls = 0
        self.reasoning_tokens = 0

    def begin(self) -> JsonObject:
        return self._chunk({"role": "assistant", "content": ""})

    def delta(self, event: Delta) -> list[JsonObject]:
        thought = self._reader.thinking
        pieces = self._reader.add(event.text)
        if thought or self._reader.thinking:
            self.reasoning_tokens += len(event.tokens)
        self._waiting += event.logprobs
        return self._chunks(pieces)

    def end(self, event: Finished) -> list[JsonObject]:
        pieces = self._reader.add(event.stop) if self._plan.include_stop and isinstance(event.stop, str) else []
        chunks = self._chunks([*pieces, *self._reader.finish()])
        reason = "length" if event.reason == "length" else "stop"
        if self._calls and reason == "stop":
            reason = "function_call" if self._plan.legacy else "tool_calls"
        return [*chunks, self._chunk({}, reason)]

    def _chunks(self, pieces: Iterable[Piece]) -> list[JsonObject]:
        deltas = [self._delta(piece) for piece in pieces]
        return [self._chunk(delta) for delta in deltas if delta]

    def _delta(self, piece: Piece) -> JsonObject:
        if piece.kind == "content":
            return {"content": piece.text}
        if piece.kind == "reasoning":
            return {"reasoning_content": piece.text}
        return self._legacy(piece) if self._plan.legacy else self._tool(piece)

    def _tool(self, piece: Piece) -> JsonObject:
        if piece.kind == "arguments":
            return {"tool_calls": [{"index": self._calls - 1, "function": {"arguments": piece.text}}]}
        self._calls += 1
        function = {"name": piece.text, "arguments": ""}
        length = self._plan.form.id_length if self._plan.form else 0
        name = random_id(length) if length else f"call_{random_id()}"
        return {"tool_calls": [{"index": self._calls - 1, "id": name, "type": "function", "function": function}]}

    def _legacy(self, piece: Piece) -> JsonObject:
        """`function_call`, which holds one call: further ones are content."""
        if piece.kind == "call":
            self._calls += 1
            first = {"function_call": {"name": piece.text, "arguments": ""}}
            return first if self._calls == 1 else {"content": f"{piece.text} "}
        return {"function_call": {"arguments": piece.text}} if self._calls == 1 else {"content": piece.text}

    def _chunk(self, delta: JsonObject, reason: str | None = None) -> JsonObject:
        chunk: JsonObject = {"index": self._index, "delta": delta, "finish_reason": reason}
        if self._plan.logprobs:
            waiting, self._waiting = self._waiting, []
            chunk["logprobs"] = chat_logprobs(waiting, self._bytes) if waiting else None
        return chunk


class ChatWriter:
    """All choices of a reply. `begin`, then `take` for each event, then `end`."""

    def __init__(self, plan: Plan, model: str, token_bytes: Callable[[int], bytes]) -> None:
        self._plan = plan
        self._envelope = Envelope("chatcmpl", "chat.completion.chunk", model)
        self._choices = [Choice(index, plan, token_bytes) for index in range(plan.generation.n)]
        self._usages: list[Usage] = []

    def begin(self) -> list[JsonObject]:
        return [self._envelope.event(choice.begin()) for choice in self._choices]

    def take(self, event: Delta | Finished) -> list[JsonObject]:
        choice = self._choices[event.index]
        if isinstance(event, Delta):
            chunks = choice.delta(event)
        else:
            self._usages.append(event.usage)
            chunks = choice.end(event)
        return [self._envelope.event(chunk) for chunk in chunks]

    def end(self) -> list[JsonObject]:
        if not self._plan.usage:
            return []
        thought = sum(choice.reasoning_tokens for choice in self._choices) if self._plan.marks else None
        return [self._envelope.usage(usage([self._usages], thought))]
