"""litellm's exceptions, converted to the replies of a provider of the openai dialect.

litellm changes statuses (529 becomes 500, 413 becomes 400) and puts the provider's body into a sentence. The original
exception still has the status, and the body is extracted from the sentence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from dragoman.adapters.call import Headers, JsonObject
from dragoman.adapters.faults import Kind

__all__ = ["ErrorReply", "TransportFailure", "find_transport_failure", "is_early_end", "to_error_reply"]

_HEADERS = ("retry-after", "retry-after-ms", "x-ms-retry-after-ms", "x-should-retry")
_PREFIX = re.compile(r"^(?:litellm\.(?:\w+\.)*\w+: )*(?:\w+(?:Exception|Error) - )?")
_SUFFIX = re.compile(r"\. Handle with `litellm\.\w+`\.$|\n?LiteLLM Retried: .*$", re.DOTALL)
_ADVICE = re.compile(r"\.? To drop these, set .*$", re.DOTALL)


_EARLY_END = "Stream ended before a finish_reason was received"
"""litellm's words from 1.109 on; older ones make up a finish reason."""


class ErrorReply(NamedTuple):
    """A provider's error, its body in OpenAI's form or in the provider's own."""

    status: int
    headers: Headers
    body: JsonObject


class TransportFailure(NamedTuple):
    """A failure between the proxy and the provider. `cause` names the exception, for the log."""

    kind: Kind
    code: str
    text: str
    cause: str = ""


_REDIRECT = TransportFailure("upstream_invalid_response", "upstream_redirect", "it redirects, which is not followed")

# The names of httpx's exceptions, of either of its generations.
_FAILURES: Mapping[str, TransportFailure] = {
    "ConnectTimeout": TransportFailure("upstream_timeout", "upstream_connect_timeout", "connecting took too long"),
    "ConnectError": TransportFailure("upstream_unreachable", "upstream_unreachable", "cannot connect"),
    "TimeoutException": TransportFailure("upstream_timeout", "upstream_timeout", "did not answer in time"),
    "RemoteProtocolError": TransportFailure("upstream_unreachable", "upstream_disconnected", "the connection broke"),
    "NetworkError": TransportFailure("upstream_unreachable", "upstream_disconnected", "the connection broke"),
    "TransportError": TransportFailure(
        "upstream_invalid_response", "upstream_protocol_error", "the reply is not valid HTTP"
    ),
}


def find_transport_failure(error: Exception) -> TransportFailure | None:
    """The failure, or None if the provider answered with an error.

    The cause is httpx's own exception, because litellm's texts quote the provider.
    """
    for one in filter(_is_httpx_error, _list_causes(error)):
        for cls in type(one).__mro__:
            if failure := _FAILURES.get(cls.__name__):
                return failure._replace(cause=f"{type(one).__name__}: {one}")
    return _REDIRECT if 300 <= _find_status(error) < 400 else None


def is_early_end(error: Exception) -> bool:
    """Whether litellm raised this because the provider ended its stream without a finish reason."""
    return _EARLY_END in str(error)


def to_error_reply(error: Exception) -> ErrorReply:
    """The provider's reply, as far as litellm preserves it; for an error of litellm itself, its text."""
    status = _find_status(error)
    text = _SUFFIX.sub("", _PREFIX.sub("", str(getattr(error, "message", "") or error)))
    return ErrorReply(status, _find_headers(error), _find_json(text) or _to_error_body(error, text, status))


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and those that it came from, the first cause last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = getattr(error, "original_exception", None) or error.__cause__ or error.__context__


def _is_httpx_error(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("httpx", "httpx2")


def _find_status(error: Exception) -> int:
    """The provider's own status: the innermost that is one."""
    found = 0
    for one in _list_causes(error):
        status = getattr(one, "status_code", None) or getattr(getattr(one, "response", None), "status_code", None)
        found = status if isinstance(status, int) and 300 <= status < 600 else found
    return found or 502


def _find_headers(error: Exception) -> Headers:
    for one in _list_causes(error):
        for source in (getattr(one, "litellm_response_headers", None), getattr(one, "headers", None)):
            if isinstance(source, Mapping) and (kept := {name: source[name] for name in _HEADERS if name in source}):
                return kept
    return {}


def _find_json(text: str) -> JsonObject | None:
    """The JSON object in the text, if it holds one; litellm writes bytes in Python's notation."""
    for start in (text.find("b'"), text.find('b"')):
        if start >= 0:
            try:
                text = ast.literal_eval(text[start:]).decode("utf-8", "replace")
            except (ValueError, SyntaxError, AttributeError):
                continue
            break
    start, end = text.find("{"), text.rfind("}")
    try:
        body = orjson.loads(text[start : end + 1])
    except orjson.JSONDecodeError:
        return None
    return body if isinstance(body, dict) else None


def _to_error_body(error: Exception, text: str, status: int) -> JsonObject:
    unsupported = type(error).__name__ == "UnsupportedParamsError"
    code: Any = "unsupported_parameter" if unsupported else getattr(error, "code", None)
    kind: Any = "invalid_request_error" if unsupported else getattr(error, "type", None)
    param: Any = getattr(error, "param", None)
    text = _ADVICE.sub("", text)
    return {"error": {"message": text, "type": kind, "param": param, "code": code, "status": status}}
