"""Token masks by llguidance: what a model may write next, so that its output is of the wanted form."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

from .detok import TokenBytes
from .reasoning import Marks
from .requests import TokenMask

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer
    from tokenizers import Tokenizer

__all__ = ["Guide", "Guides", "LazyGuide"]

KEPT = 64


class Guide:
    """A grammar from the first token on. The text is complete when the grammar has nothing more to say."""

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    def fill(self, words: memoryview) -> bool:
        bits = self._matcher.compute_bitmask()
        if self._matcher.is_error():
            raise ValueError(_first_line(self._matcher.get_error()))
        room = words.cast("B")
        size = min(len(room), len(bits))
        room[:size] = bits[:size]
        return True

    def accept(self, token: int) -> bool:
        if not self._matcher.consume_token(token):
            raise ValueError(_first_line(self._matcher.get_error()))
        return self._matcher.is_stopped()


class LazyGuide:
    """Free text until a marker, then a grammar to its end, then free text again, or the end of it all if `once`.

    Text before `until`, the end of the reasoning, is free throughout.
    """

    def __init__(
        self,
        begin: Callable[[], LLMatcher],
        marker: str,
        token_bytes: Callable[[int], bytes],
        tokenize: Callable[[bytes], list[int]],
        until: str = "",
        *,
        once: bool = False,
    ) -> None:
        self._begin = begin
        self._marker = marker.encode()
        self._until = until.encode()
        self._once = once
        self._bytes = token_bytes
        self._tokenize = tokenize
        self._tail = b""
        self._guide: Guide | None = None

    def fill(self, words: memoryview) -> bool:
        return self._guide.fill(words) if self._guide else False

    def accept(self, token: int) -> bool:
        if self._guide is not None:
            complete = self._guide.accept(token)
            self._guide = None if complete else self._guide
            return complete and self._once
        self._tail += self._bytes(token)
        if self._until:
            if self._until not in self._tail:
                self._tail = self._tail[-len(self._until) :]
                return False
            self._tail, self._until = self._tail.partition(self._until)[2], b""
        if self._marker in self._tail:
            self._start(self._tail.partition(self._marker)[2])
        self._tail = self._tail[-len(self._marker) :] if self._guide is None else b""
        return False

    def _start(self, rest: bytes) -> None:
        """Begin the grammar, after what the last token wrote beyond the marker. What it cannot begin with is free."""
        matcher = self._begin()
        if rest and not matcher.consume_tokens(self._tokenize(rest)):
            return
        self._guide = Guide(matcher)


class Guides:
    """The grammars of one model. Its methods block, and may be called from any thread."""

    def __init__(self, tokenizer: Tokenizer, vocab: int, ends: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self._vocab = vocab
        self._ends = sorted(ends)
        self._bytes = TokenBytes(tokenizer)
        self._words: LLTokenizer | None = None
        self._kept: OrderedDict[str, LLMatcher] = OrderedDict()
        self._lock = threading.Lock()

    def mark(self, text: str) -> str:
        """A marker as grammars write it."""
        import json

        token = self._tokenizer.token_to_id(text)
        if token is not None and self._table().is_special_token(token):
            return f"<[{token}]>"
        return json.dumps(text, ensure_ascii=False)

    def guide(self, grammar: str, path: Path) -> Callable[[], TokenMask]:
        """Makes a mask for each choice. Raises Fault at `path` for a grammar that cannot be compiled."""
        matcher = self._compiled(grammar, path)
        return lambda: Guide(matcher.deep_copy())

    def lazy(
        self, grammar: str, marker: str, thinking: Marks | None, path: Path, *, once: bool = False
    ) -> Callable[[], TokenMask]:
        """The same for text that is free until the marker; `thinking` has to be closed first."""
        matcher = self._compiled(grammar, path)
        until = thinking.close if thinking else ""
        words = self._table()
        return lambda: LazyGuide(matcher.deep_copy, marker, self._bytes, words.tokenize_bytes, until, once=once)

    def _compiled(self, grammar: str, path: Path) -> LLMatcher:
        from llguidance import LLMatcher

        with self._lock:
            found = self._kept.get(grammar)
            if found is not None:
                self._kept.move_to_end(grammar)
                return found
        matcher = LLMatcher(self._table(), LLMatcher.grammar_from_lark(grammar), log_level=0)
        if matcher.is_error():
            reason = _first_line(matcher.get_error())
            raise Fault("invalid_request", f"the schema cannot be enforced: {reason}", path, code="invalid_json_schema")
        with self._lock:
            self._kept[grammar] = matcher
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return matcher

    def _table(self) -> LLTokenizer:
        from llguidance import LLTokenizer

        with self._lock:
            if self._words is None:
                size = max(self._vocab, self._tokenizer.get_vocab_size())
                self._words = LLTokenizer(self._tokenizer.to_str(), n_vocab=size, eos_token=self._ends or None)
            return self._words


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
