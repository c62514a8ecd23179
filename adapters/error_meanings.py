"""What providers' codes and sentences mean: the kind of a fault and the code that clients look for.

A row here decides, whatever HTTP status the error came with: servers give the same sentence 400, 413, 422, 429, 500 or
200. `COMMON` is different: its codes are as general as a status, and refine only a general one (`native_errors`).

No two rows of SENTENCES match the same error, so their order has no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple, TypeAlias

from .faults import Kind

__all__ = [
    "COMMON",
    "CONTEXT_LENGTH",
    "DECISIVE",
    "OVERLOADED",
    "QUOTA",
    "SENTENCES",
    "UNSERVED",
    "Meaning",
    "Words",
    "find_meaning",
    "is_about_credentials",
    "to_snake_case",
]

Words: TypeAlias = Mapping[str, Kind]
"""Codes and labels, in snake case -> the kind of fault that they mean."""


class Meaning(NamedTuple):
    kind: Kind
    code: str | None = None


class Sentence(NamedTuple):
    pattern: str
    meaning: Meaning

    def matches(self, text: str) -> bool:
        """Whether the text has the pattern, in any case of letters."""
        return _compile(self.pattern).search(text) is not None


CONTEXT_LENGTH = "context_length_exceeded"
"""The code that agents look for before they shorten a conversation: Codex, opencode, Cline."""
QUOTA = "insufficient_quota"
"""OpenAI's code for an account without credit or past its limit of spending. To wait does not help."""
UNSERVED = "unsupported_protocol"
"""The code of faults that say that a provider does not serve a protocol."""

OVERLOADED = "server_is_overloaded"
"""The code of a provider that has too much to do; Codex looks for it."""

_CONTEXT = Meaning("invalid_request", CONTEXT_LENGTH)
_QUOTA = Meaning("rate_limit", QUOTA)
_OVERLOADED = Meaning("upstream_unavailable", OVERLOADED)
_LOADING = Meaning("upstream_unavailable", "model_loading")
_MODERATION = Meaning("content_filter", "content_filter")
_COUNTRY = Meaning("permission", "unsupported_country_region_territory")
_CREDENTIALS = Meaning("upstream_auth_failed", "upstream_auth_failed")
_MODEL = Meaning("model_not_found", "model_not_found")
_PROTOCOL = Meaning("unsupported_parameter", UNSERVED)

DECISIVE: Mapping[str, Meaning] = {
    "context_length_exceeded": _CONTEXT,  # OpenAI, Azure OpenAI, Cerebras, Groq, llama-cpp-python
    "exceed_context_size_error": _CONTEXT,  # llama.cpp
    "model_max_prompt_tokens_exceeded": _CONTEXT,  # GitHub Copilot
    "tokens_limit_reached": _CONTEXT,  # GitHub Models
    "insufficient_quota": _QUOTA,  # OpenAI
    "billing_hard_limit_reached": _QUOTA,  # OpenAI
    "exceeded_current_quota_error": _QUOTA,  # Kimi
    "insufficient_balance": _QUOTA,  # DeepSeek, Novita
    "billing_error": _QUOTA,  # Anthropic
    "arrearage": _QUOTA,  # DashScope
    "allocation_quota_free_tier_only": _QUOTA,  # DashScope
    "account_overdue_error": _QUOTA,  # Volcengine
    "content_filter": _MODERATION,  # Azure, OpenAI
    "content_policy_violation": _MODERATION,  # OpenAI
    "moderation_blocked": _MODERATION,  # OpenAI
    "flagged_input": _MODERATION,  # OpenRouter: a key of the metadata
    "responsible_aipolicy_violation": _MODERATION,  # Azure OpenAI: innererror
    "data_inspection_failed": _MODERATION,  # DashScope
    "sensitive_content_detected": _MODERATION,  # Volcengine
    "unsupported_country_region_territory": _COUNTRY,  # OpenAI
    "overloaded_error": _OVERLOADED,  # Anthropic
    "overloaded": _OVERLOADED,  # text-generation-inference
    "engine_overloaded_error": _OVERLOADED,  # Kimi
    "engine_overloaded": _OVERLOADED,  # Kimi
    "server_is_overloaded": _OVERLOADED,  # OpenAI
    "slow_down": _OVERLOADED,  # OpenAI
    "api_key_invalid": _CREDENTIALS,  # Gemini: reason of an ErrorInfo, with status 400
}

COMMON: Words = {
    "invalid_request": "invalid_request",
    "invalid_request_error": "invalid_request",
    "bad_request": "invalid_request",
    "bad_request_error": "invalid_request",
    "invalid_prompt": "invalid_request",
    "invalid_argument": "invalid_request",  # google.rpc.Code, here and below
    "failed_precondition": "invalid_request",
    "validation_exception": "invalid_request",  # AWS, here and below
    "invalid_api_key": "upstream_auth_failed",
    "authentication_error": "upstream_auth_failed",
    "unauthorized": "upstream_auth_failed",
    "unauthenticated": "upstream_auth_failed",
    "unrecognized_client_exception": "upstream_auth_failed",
    "expired_token_exception": "upstream_auth_failed",
    "permission_error": "permission",
    "permission_denied": "permission",
    "access_denied_exception": "permission",
    "not_found": "not_found",
    "not_found_error": "not_found",
    "resource_not_found_exception": "not_found",
    "model_not_found": "model_not_found",
    "extra_forbidden": "extra_parameter",
    "unknown_parameter": "extra_parameter",
    "unsupported_parameter": "unsupported_parameter",
    "unsupported_value": "unsupported_parameter",
    "request_too_large": "too_large",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "too_many_requests": "rate_limit",
    "resource_exhausted": "rate_limit",
    "throttling_exception": "rate_limit",
    "service_quota_exceeded_exception": "rate_limit",
    "timeout": "upstream_timeout",
    "timeout_error": "upstream_timeout",
    "upstream_timeout": "upstream_timeout",
    "deadline_exceeded": "upstream_timeout",
    "model_timeout_exception": "upstream_timeout",
    "service_unavailable": "upstream_unavailable",
    "service_unavailable_error": "upstream_unavailable",
    "temporarily_unavailable": "upstream_unavailable",
    "unavailable": "upstream_unavailable",
    "unavailable_error": "upstream_unavailable",  # llama.cpp
    "model_not_ready_exception": "upstream_unavailable",
    "service_unavailable_exception": "upstream_unavailable",
    "server_error": "upstream_error",
    "api_error": "upstream_error",
    "model_error": "upstream_error",
    "model_error_exception": "upstream_error",
    "internal": "upstream_error",
    "internal_server_error": "upstream_error",
    "internal_server_exception": "upstream_error",
}
"""Codes that many servers have copied from OpenAI, from google.rpc and from one another."""


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Patterns are compiled when the first error is read: to compile them all takes some milliseconds of each start."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


SENTENCES: tuple[Sentence, ...] = (
    # OpenAI, vLLM, DeepSeek, OpenRouter, llama-cpp-python "is N tokens"; SGLang "of N tokens"; Mistral "N maximum ..."
    Sentence(r"maximum context length", _CONTEXT),
    # SGLang, Together: "The input (N tokens) is longer than the model's context length (M tokens)"
    Sentence(r"longer than the model's context length", _CONTEXT),
    # vLLM: "The decoder prompt (length N) is longer than the maximum model length of M"
    Sentence(r"longer than the maximum model length", _CONTEXT),
    # vLLM 0.15: "You passed N input tokens ... However, the model's context length is only M tokens"
    # LM Studio: "However, the model is loaded with context length of only M tokens"
    Sentence(r"context length (?:is|of) only \d", _CONTEXT),
    # vllm-project/vllm#4667: what is left for the answer is negative
    Sentence(r"^max_tokens must be at least 1, got -\d", _CONTEXT),
    # llama.cpp: "request (N tokens) exceeds the available context size (M tokens), try increasing it"
    Sentence(r"exceeds the available context size", _CONTEXT),
    # llama.cpp, while it generates, with 500
    Sentence(r"context size has been exceeded", _CONTEXT),
    # Ollama: "prompt too long; exceeded max context length by N tokens"
    Sentence(r"prompt too long; exceeded (?:max )?context length", _CONTEXT),
    # Ollama: "the input length exceeds the context length"
    Sentence(r"input length exceeds the (?:maximum )?context length", _CONTEXT),
    # Ollama without truncation: "the prompt is longer than the context length currently available to the model"
    Sentence(r"longer than the context length currently available", _CONTEXT),
    # LM Studio: "The number of tokens to keep from the initial prompt is greater than the context length"
    Sentence(r"is greater than the context length", _CONTEXT),
    # Databricks, MosaicML: "prompt token count (29) + max output tokens (4085) cannot exceed 4096"
    Sentence(r"prompt token count .{0,80}cannot exceed \d", _CONTEXT),
    # GitHub Copilot: "prompt token count of N exceeds the limit of M"
    Sentence(r"prompt token count .{0,80}exceeds the limit", _CONTEXT),
    # GitHub Models: "Request body too large for gpt-4o model. Max size: 8000 tokens."
    Sentence(r"request body too large for .{0,100}max size: \d+ tokens", _CONTEXT),
    # Anthropic, Bedrock: "prompt is too long: N tokens > M maximum"; Fireworks adds "model maximum context length: M"
    Sentence(r"prompt is too long(?!.{0,80}maximum context length)", _CONTEXT),
    # Anthropic: "input length and `max_tokens` exceed context limit: 198826 + 8192 > 200000"
    Sentence(r"exceed context limit", _CONTEXT),
    # OpenAI Responses: "Your input exceeds the context window of this model"; llama-cpp-python: "exceed context window"
    Sentence(r"exceeds? (?:the )?context window", _CONTEXT),
    # Azure OpenAI: "Input tokens exceed the configured limit of N tokens. Your messages resulted in M tokens."
    Sentence(r"input tokens exceed the configured limit", _CONTEXT),
    # Gemini: "The input token count (N) exceeds the maximum number of tokens allowed (M)."; Vertex without (N)
    Sentence(r"input token count .{0,60}exceeds the maximum number of tokens", _CONTEXT),
    # Vertex: "the input token count is N but model only supports up to M"
    Sentence(r"input token count is \d+ but (?:the )?model (?:only )?supports up to", _CONTEXT),
    # Together, with 403: "Input token count + max_tokens parameter must be less than the context length of the model"
    Sentence(r"must be less than the context length", _CONTEXT),
    # Bedrock: "Input is too long for requested model."
    Sentence(r"input is too long for (?:the )?(?:requested )?model", _CONTEXT),
    # text-generation-inference: "`inputs` tokens + `max_new_tokens` must be <= N", "... must have less than N tokens"
    Sentence(r"`inputs` (?:tokens \+ `max_new_tokens` must be <=|must have less than \d+ tokens)", _CONTEXT),
    # Kimi: "Your request exceeded model token limit: N (requested: M)"
    Sentence(r"exceeded model token limit", _CONTEXT),
    # xAI: "This model's maximum prompt length is N but the request contains M tokens."
    Sentence(r"maximum prompt length is \d", _CONTEXT),
    # Groq, Cerebras: "Please reduce the length of the messages or completion."; vLLM says it after another sentence
    Sentence(r"^please reduce the length of the messages", _CONTEXT),
    # Cohere: "too many tokens: total number of tokens in the prompt cannot exceed N - received M"
    Sentence(r"number of tokens in the prompt cannot exceed", _CONTEXT),
    # MiniMax: "invalid params, context window exceeds limit"
    Sentence(r"context window exceeds limit", _CONTEXT),
    # DashScope: "Range of input length should be [1, 129024]"
    Sentence(r"range of input length should be", _CONTEXT),
    # Zhipu, code 1261
    Sentence(r"prompt (?:exceeds max length|超长)", _CONTEXT),
    # OpenRouter's Poolside: "Input length N exceeds the maximum allowed input length of M tokens."
    Sentence(r"exceeds the maximum allowed input length", _CONTEXT),
    # TensorRT-LLM: "The sum of prompt length (N), max_tokens (M) should not exceed max_seq_len (L)"
    Sentence(r"prompt length .{0,120}(?:should not exceed|exceeds) max_(?:num_tokens|seq_len|input_len)", _CONTEXT),
    # mistral.rs: "Prompt sequence length is greater than N"
    Sentence(r"^prompt sequence length is greater than", _CONTEXT),
    # OpenAI; Gemini says it about every limit, also one of a minute, with an address of its own
    Sentence(r"exceeded your current (?:token )?quota(?!.*\b(?:ai\.google\.dev|retry in)\b)", _QUOTA),
    Sentence(r"billing hard limit has been reached", _QUOTA),  # OpenAI
    Sentence(r"credit balance is too low", _QUOTA),  # Anthropic, with 400
    Sentence(r"^insufficient (?:account )?balance", _QUOTA),  # DeepSeek, MiniMax (base_resp 1008 with 200), Kimi
    Sentence(r"account balance is insufficient", _QUOTA),  # SiliconFlow, with 403
    Sentence(r"account .{0,80}is suspended.{0,80}billing", _QUOTA),  # Kimi
    Sentence(r"^insufficient credits", _QUOTA),  # OpenRouter, with 402
    Sentence(r"requires more credits, or fewer max_tokens", _QUOTA),  # OpenRouter, with 402
    Sentence(r"^key limit exceeded", _QUOTA),  # OpenRouter, with 403: the limit of spending of one key
    Sentence(r"doesn't have any credits", _QUOTA),  # xAI, with 403
    Sentence(r"used all available credits|reached its monthly spending limit", _QUOTA),  # xAI
    Sentence(r"exceeded your monthly included credits", _QUOTA),  # Hugging Face, with 402
    Sentence(r"^credit limit exceeded", _QUOTA),  # Together, with 402
    Sentence(r"make sure your account is in good standing", _QUOTA),  # DashScope
    Sentence(r"free tier of the model has been exhausted", _QUOTA),  # DashScope, with 403
    Sentence(r"余额不足", _QUOTA),  # Zhipu, code 1113
    Sentence(r"input was flagged for", _MODERATION),  # OpenRouter, with 403
    Sentence(r"prompt was flagged as potentially violating", _MODERATION),  # OpenAI, reasoning models
    Sentence(r"rejected as a result of our safety system", _MODERATION),  # OpenAI
    Sentence(r"content management policy", _MODERATION),  # Azure OpenAI
    Sentence(r"output blocked by content filtering policy", _MODERATION),  # Anthropic
    Sentence(r"may contain inappropriate content", _MODERATION),  # DashScope
    Sentence(r"^content exists risk", _MODERATION),  # DeepSeek
    Sentence(r"rejected because it was considered high risk", _MODERATION),  # Kimi
    Sentence(r"content violates usage guidelines", _MODERATION),  # xAI, with 403
    Sentence(r"不安全或敏感内容", _MODERATION),  # Zhipu, code 1301
    Sentence(r"^country, region, or territory not supported", _COUNTRY),  # OpenAI
    Sentence(r"user location is not supported", _COUNTRY),  # Gemini, with 400
    Sentence(r"not available in your (?:country|region)", _COUNTRY),  # Mistral, Cohere
    Sentence(r"engine is currently overloaded", _OVERLOADED),  # OpenAI with 503, Kimi with 429
    Sentence(r"model is (?:currently )?overloaded", _OVERLOADED),  # OpenAI, Gemini, text-generation-inference
    Sentence(r"^overloaded\W*$", _OVERLOADED),  # Anthropic
    Sentence(r"is (?:currently )?over capacity", _OVERLOADED),  # Groq
    Sentence(r"model is at capacity", _OVERLOADED),  # OpenAI
    Sentence(r"^model (?:too )?busy", _OVERLOADED),  # DeepInfra, Hugging Face
    Sentence(r"is currently experiencing high demand", _OVERLOADED),  # Gemini
    Sentence(r"^loading model\b", _LOADING),  # llama.cpp, with 503
    Sentence(r"\bis (?:currently |still )?loading\b", _LOADING),  # Hugging Face, vLLM's production stack
    Sentence(r"api key not valid", _CREDENTIALS),  # Gemini, with 400
    Sentence(r"incorrect api key provided", _CREDENTIALS),  # OpenAI; xAI with 400
    Sentence(r"^invalid (?:x-)?api[- ]key", _CREDENTIALS),  # Anthropic, Groq, DashScope, gateways with 400
    Sentence(r"api key expired", _CREDENTIALS),  # Gemini, with 400
    Sentence(r"is not a valid model id\b", _MODEL),  # OpenRouter, with 400
    Sentence(r"^no endpoints found for ", _MODEL),  # OpenRouter
    Sentence(r"^invalid model: ", _MODEL),  # Mistral, with 400
    Sentence(r"not found the model ", _MODEL),  # Kimi
    Sentence(r"^models/\S+ is not found", _MODEL),  # Gemini
    Sentence(r"model `?[^`]{1,100}`? has been decommissioned", _MODEL),  # Groq, with 400
    Sentence(r"model identifier is invalid", _MODEL),  # Bedrock, with 400
    Sentence(r"^model: [\w.:/@-]+$", _MODEL),  # Anthropic
    Sentence(r"^no models? loaded", _MODEL),  # LM Studio
    Sentence(r"^endpoint with name '[^']{1,200}' does not exist", _MODEL),  # Databricks
    # vLLM "The model does not support Embeddings API"; Ollama '"m" does not support chat'; llama.cpp "This server ..."
    Sentence(
        r"does not support (?:the )?(?:chat(?: completions)?|completions|embeddings?)(?: api)?(?:\W*$|\. )", _PROTOCOL
    ),
    Sentence(r"not supported in the v1/", _PROTOCOL),  # OpenAI, with 404
    Sentence(r"^the \w+ operation does not work with the specified model", _PROTOCOL),  # Azure OpenAI, with 400
    Sentence(r"cannot be used with the [\w/]+ endpoint", _PROTOCOL),  # OpenRouter, with 400
    Sentence(r"^missing required chat parameter", _PROTOCOL),  # Databricks, with 400
)

_ABOUT_CREDENTIALS = re.compile(
    r"\b(?:api|subscription|access)[ _-]?keys?\b|\b(?:access|bearer|auth\w*|security|session|api) ?tokens?\b"
    r"|\bcredentials?\b|\bunauthenticated\b|\bauthenticat|\bauthorization\b|\bnot authorized to perform\b"
    r"|\blog(?:ged)? ?in\b|\bsignature\b|\boauth\b|\bjwt\b",
    re.IGNORECASE,
)
_NO_REASON = re.compile(
    r"\W*(?:http )?(?:error:? )?(?:403)?\W*"
    r"(?:forbidden|permission[ _]denied|access[ _]denied|not authorized|unauthorized(?: access)?)?\W*",
    re.IGNORECASE,
)


def find_meaning(words: list[str], text: str) -> Meaning | None:
    """Find what a provider's codes, else its sentence, mean; None if no row decides."""
    by_code = next((DECISIVE[word] for word in map(to_snake_case, words) if word in DECISIVE), None)
    return by_code or next((sentence.meaning for sentence in SENTENCES if sentence.matches(text)), None)


def is_about_credentials(text: str) -> bool:
    """Whether the sentence of a 403 is about the credentials that were sent, or gives no reason at all."""
    return _NO_REASON.fullmatch(text) is not None or _ABOUT_CREDENTIALS.search(text) is not None


def to_snake_case(text: str) -> str:
    """Return a code or label, `RateLimitExceeded` or `Input Validation Error`, as `rate_limit_exceeded`."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()).strip("_")
