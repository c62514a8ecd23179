"""What providers' finish reasons mean: one table for every dialect and every protocol with choices.

Servers copy words from one another, and gateways pass on the words of what is behind them, so a word is looked up
without regard to the dialect. Only a word that means something else in one dialect has a rule there, as MindIE's
`stop_sequence` has. Case, hyphens and prefixes are ignored: `FinishReason.MAX_TOKENS` is `max_tokens`, and the last
known word of `function_call_filter: MALFORMED_FUNCTION_CALL` counts, which is how Gemini's OpenAI endpoint writes it.

Words that say nothing about success are not in the table, so that the policy `replies` decides: Gemini's `OTHER` and
`FINISH_REASON_UNSPECIFIED`, the `other` and `unknown` of gateways.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dragoman.adapters.faults import Fault, Kind

__all__ = ["ENDINGS", "Ending", "Failure", "find_ending", "has_finished"]


@dataclass(frozen=True, slots=True)
class Failure:
    """The meaning of a finish reason that reports a failure: the kind and the code of its fault."""

    kind: Kind
    code: str

    def to_fault(self, word: str, why: str = "") -> Fault:
        """Make the fault. `word` is the provider's finish reason, `why` its own sentence about it, if there is one."""
        text = f"the provider ended the answer with the finish reason {word!r}{f': {why[:500]}' if why else ''}"
        status = 502 if self.kind == "upstream_error" else 0
        return Fault(self.kind, text, status=status, code=self.code, provider_code=word)


Ending: TypeAlias = str | Failure
"""One of the hub's finish reasons, or a failure."""

_ERROR = Failure("upstream_error", "upstream_error")
_ABORTED = Failure("upstream_invalid_response", "upstream_aborted")
_OVERLOADED = Failure("upstream_unavailable", "upstream_unavailable")
_LATE = Failure("upstream_timeout", "upstream_timeout")
_LIMITED = Failure("rate_limit", "rate_limit_exceeded")
_MALFORMED = Failure("upstream_invalid_response", "upstream_malformed_generation")

_ROWS: tuple[tuple[Ending, str, str], ...] = (
    ("stop", "stop", "OpenAI chat and completions references, finish_reason"),
    ("stop", "end_turn stop_sequence", "Anthropic Messages, stop_reason; Bedrock Converse, stopReason"),
    ("stop", "eos_token", "TGI's FinishReason; MindIE's reference; watsonx's stop_reason"),
    ("stop", "eos", "Together's finish_reason; llama.cpp's earlier stop type"),
    ("stop", "word", "llama.cpp server, /completion, stop_type: a stop string was found"),
    ("stop", "complete", "Cohere chat, finish_reason"),
    ("stop", "done", "Cerebras chat completions, finish_reason"),
    ("stop", "endoftext end_of_text", "AI21 Jurassic, finishReason; servers that name the model's token"),
    ("stop", "finish finished", "Amazon Titan Text, completionReason"),
    ("stop", "load unload", "Ollama, done_reason of an empty prompt; its OpenAI endpoint forwards it"),
    ("length", "length", "OpenAI chat and completions references, finish_reason"),
    ("length", "max_tokens", "Anthropic Messages; Bedrock Converse; Cohere; Gemini's FinishReason; watsonx"),
    ("length", "max_output_tokens", "OpenAI Responses, incomplete_details.reason, passed on by gateways"),
    ("length", "max_output", "MiniMax chatcompletion_v2, finish_reason"),
    ("length", "model_length", "Mistral chat, finish_reason; Perplexity"),
    ("length", "model_context_window_exceeded", "Anthropic Messages; Bedrock Converse; Z.ai chat completions"),
    ("length", "context_length", "gateways: the context window is full"),
    ("length", "token_limit time_limit", "watsonx text generation, stop_reason: limits that the request may set"),
    ("length", "limit", "llama.cpp server, /completion, stop_type"),
    ("length", "error_limit", "Cohere chat v1, finish_reason: the context limit was reached"),
    ("length", "repetition repetition_truncation", "vLLM, detection of repetitions; Xiaomi MiMo, Tencent TokenHub"),
    ("length", "pause_turn compaction", "Anthropic Messages: the turn is not finished"),
    ("tool_calls", "tool_calls", "OpenAI chat reference, finish_reason"),
    ("tool_calls", "tool_use", "Anthropic Messages; Bedrock Converse"),
    ("tool_calls", "tool_call", "Cohere chat v2, finish_reason"),
    ("function_call", "function_call", "OpenAI chat reference, finish_reason: deprecated"),
    ("content_filter", "content_filter", "OpenAI and Azure OpenAI chat references, finish_reason"),
    ("content_filter", "content_filtered guardrail_intervened", "Bedrock Converse, stopReason; Amazon Titan Text"),
    ("content_filter", "refusal", "Anthropic Messages, stop_reason"),
    ("content_filter", "sensitive", "Zhipu and Z.ai chat completions, finish_reason"),
    ("content_filter", "safety recitation blocklist prohibited_content spii language", "Gemini, FinishReason"),
    ("content_filter", "image_safety image_prohibited_content image_recitation", "Gemini, FinishReason"),
    ("content_filter", "model_armor", "Vertex AI, FinishReason"),
    ("content_filter", "error_toxic", "Cohere chat v1, finish_reason"),
    (_ERROR, "error", "OpenRouter, Mistral, Together, Cohere, watsonx, vLLM's FinishReason.ERROR"),
    (_ERROR, "network_error", "Zhipu and Z.ai chat completions: an exception of the inference"),
    (_ABORTED, "abort aborted", "vLLM's and SGLang's finish reasons of a request that was cancelled or failed"),
    (_ABORTED, "cancelled canceled cancel user_cancel", "watsonx; Cohere chat v1; gateways"),
    (_OVERLOADED, "insufficient_system_resource", "DeepSeek chat: interrupted, the inference lacks resources"),
    (_OVERLOADED, "engine_overloaded overloaded", "Kimi's error type engine_overloaded_error; gateways"),
    (_LATE, "timeout timed_out", "Cohere chat v2, finish_reason; gateways"),
    (_LIMITED, "rate_limit rate_limited rate_limit_exceeded", "OpenAI Responses' error codes, passed on by gateways"),
    (_MALFORMED, "malformed_function_call unexpected_tool_call too_many_tool_calls", "Gemini, FinishReason"),
    (_MALFORMED, "malformed_response missing_thought_signature no_image", "Gemini, FinishReason"),
    (_MALFORMED, "malformed_model_output malformed_tool_use", "Bedrock Converse, stopReason"),
)
"""The meaning, words in lower case, and the source."""

ENDINGS: Mapping[str, Ending] = {word: ending for ending, words, _ in _ROWS for word in words.split()}
"""A finish reason in snake case -> its meaning."""

_NOT_YET = frozenset({"null", "none", "not_finished"})
"""Words of a choice that goes on: DashScope's streams say "null" as a string, watsonx's NOT_FINISHED."""


def has_finished(word: Any) -> bool:
    """Whether a choice with this `finish_reason` has ended, for whatever reason."""
    return bool(word) and not (isinstance(word, str) and word.lower() in _NOT_YET)


def find_ending(word: str) -> Ending | None:
    """The meaning of a provider's finish reason; None if nobody knows it."""
    found = ENDINGS.get(word)
    if found is not None:
        return found
    parts = re.split(r"[.:/]", word)
    known = (ENDINGS.get(_to_snake_case(part)) for part in (word, *reversed(parts)))
    return next((ending for ending in known if ending is not None), None)


def _to_snake_case(text: str) -> str:
    return re.sub(r"[\s-]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text.strip())).lower()
