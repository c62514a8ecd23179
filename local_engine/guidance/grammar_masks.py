"""Token masks that enforce a grammar, computed by llguidance."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path
from dragoman.local_engine.generation import TokenMask
from dragoman.local_engine.text.detokenizer import TokenBytes
from dragoman.local_engine.text.reasoning_parser import ReasoningMarkers

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer
    from tokenizers import Tokenizer

__all__ = ["GrammarCompiler", "GrammarMask", "TriggeredGrammarMask"]

CACHED_GRAMMARS = 64


class GrammarMask:
    """Enforces a grammar from the first token. The text is complete when the grammar is."""

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    def fill(self, words: memoryview) -> bool:
        bits = self._matcher.compute_bitmask()
        if self._matcher.is_error():
            raise ValueError(_take_first_line(self._matcher.get_error()))
        target = words.cast("B")
        size = min(len(target), len(bits))
        target[:size] = bits[:size]
        return True

    def accept(self, token: int) -> bool:
        if not self._matcher.consume_token(token):
            raise ValueError(_take_first_line(self._matcher.get_error()))
        return self._matcher.is_stopped()


class TriggeredGrammarMask:
    """Allows free text until a trigger, then enforces a grammar to its end, then allows free text again.

    With `once`, the text is complete when the grammar is. Text before `skip_until`, the end of the reasoning, contains
    no trigger.
    """

    def __init__(
        self,
        start_matcher: Callable[[], LLMatcher],
        trigger: str,
        token_bytes: Callable[[int], bytes],
        tokenize: Callable[[bytes], list[int]],
        skip_until: str = "",
        *,
        once: bool = False,
    ) -> None:
        self._start_matcher = start_matcher
        self._trigger = trigger.encode()
        self._skip_until = skip_until.encode()
        self._once = once
        self._bytes = token_bytes
        self._tokenize = tokenize
        self._tail = b""
        self._mask: GrammarMask | None = None

    def fill(self, words: memoryview) -> bool:
        return self._mask.fill(words) if self._mask else False

    def accept(self, token: int) -> bool:
        if self._mask is not None:
            complete = self._mask.accept(token)
            self._mask = None if complete else self._mask
            return complete and self._once
        self._tail += self._bytes(token)
        if self._skip_until:
            if self._skip_until not in self._tail:
                self._tail = self._tail[-len(self._skip_until) :]
                return False
            self._tail, self._skip_until = self._tail.partition(self._skip_until)[2], b""
        if self._trigger in self._tail:
            self._start_grammar(self._tail.partition(self._trigger)[2])
        self._tail = self._tail[-len(self._trigger) :] if self._mask is None else b""
        return False

    def _start_grammar(self, rest: bytes) -> None:
        """Start the grammar with the text after the trigger. If the grammar rejects that text, the text stays free."""
        matcher = self._start_matcher()
        if rest and not matcher.consume_tokens(self._tokenize(rest)):
            return
        self._mask = GrammarMask(matcher)


class GrammarCompiler:
    """Compiles grammars for one model. The methods block and are thread-safe."""

    def __init__(self, tokenizer: Tokenizer, vocab: int, end_tokens: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self._vocab = vocab
        self._end_tokens = sorted(end_tokens)
        self._bytes = TokenBytes(tokenizer)
        self._ll_tokenizer: LLTokenizer | None = None
        self._cached: OrderedDict[str, LLMatcher] = OrderedDict()
        self._lock = threading.Lock()

    def write_marker(self, text: str) -> str:
        """Write a marker in grammar syntax."""
        import json

        token = self._tokenizer.token_to_id(text)
        if token is not None and self._load_tokenizer().is_special_token(token):
            return f"<[{token}]>"
        return json.dumps(text, ensure_ascii=False)

    def compile(self, grammar: str, path: Path) -> Callable[[], TokenMask]:
        """Compile a grammar; return a factory of masks. Raises Fault with `path` if the grammar is invalid."""
        matcher = self._compile_cached(grammar, path)
        return lambda: GrammarMask(matcher.deep_copy())

    def compile_with_trigger(
        self, grammar: str, trigger: str, reasoning: ReasoningMarkers | None, path: Path, *, once: bool = False
    ) -> Callable[[], TokenMask]:
        """Compile a grammar that applies after a trigger, and with `reasoning` only after its end. Raises Fault."""
        matcher = self._compile_cached(grammar, path)
        skip_until = reasoning.close if reasoning else ""
        tokenizer = self._load_tokenizer()
        return lambda: TriggeredGrammarMask(
            matcher.deep_copy, trigger, self._bytes, tokenizer.tokenize_bytes, skip_until, once=once
        )

    def _compile_cached(self, grammar: str, path: Path) -> LLMatcher:
        from llguidance import LLMatcher

        with self._lock:
            found = self._cached.get(grammar)
            if found is not None:
                self._cached.move_to_end(grammar)
                return found
        matcher = LLMatcher(self._load_tokenizer(), LLMatcher.grammar_from_lark(grammar), log_level=0)
        if matcher.is_error():
            reason = _take_first_line(matcher.get_error())
            raise Fault("invalid_request", f"the schema cannot be enforced: {reason}", path, code="invalid_json_schema")
        with self._lock:
            self._cached[grammar] = matcher
            if len(self._cached) > CACHED_GRAMMARS:
                self._cached.popitem(last=False)
        return matcher

    def _load_tokenizer(self) -> LLTokenizer:
        from llguidance import LLTokenizer

        with self._lock:
            if self._ll_tokenizer is None:
                size = max(self._vocab, self._tokenizer.get_vocab_size())
                self._ll_tokenizer = LLTokenizer(
                    self._tokenizer.to_str(), n_vocab=size, eos_token=self._end_tokens or None
                )
            return self._ll_tokenizer


def _take_first_line(text: str) -> str:
    return text.partition("\n")[0]
