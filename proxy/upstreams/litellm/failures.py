"""litellm's exceptions, as what a provider of the openai dialect would have answered.

litellm moves statuses (529 becomes 500, 413 becomes 400) and puts the provider's body into a sentence. The exception
that it made its own from still has the status; the body is taken out of the sentence again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from dragoman.adapters.call import Headers, JsonObject
from dragoman.adapters.faults import Fault, Kind

__all__ = ["Answered", "answered", "fault_of"]

_HEADERS = ("retry-after", "retry-after-ms", "x-ms-retry-after-ms", "x-should-retry")
_PREFIX = re.compile(r"^(?:litellm\.(?:\w+\.)*\w+: )*(?:\w+(?:Exception|Error) - )?")
_SUFFIX = re.compile(r"\. Handle with `litellm\.\w+`\.$|\n?LiteLLM Retried: .*$", re.DOTALL)
_ADVICE = re.compile(r"\.? To drop these, set .*$", re.DOTALL)


class Answered(NamedTuple):
    """An error reply in OpenAI's form, or in the provider's own."""

    status: int
    headers: Headers
    body: JsonObject


class _Mishap(NamedTuple):
    kind: Kind
    code: str
    text: str


# The names of httpx's exceptions, of either of its generations.
_MISHAPS: Mapping[str, _Mishap] = {
    "ConnectTimeout": _Mishap("upstream_timeout", "upstream_connect_timeout", "no connection in time"),
    "ConnectError": _Mishap("upstream_unreachable", "upstream_unreachable", "no connection"),
    "TimeoutException": _Mishap("upstream_timeout", "upstream_timeout", "no answer in time"),
    "RemoteProtocolError": _Mishap("upstream_unreachable", "upstream_disconnected", "the connection broke"),
    "NetworkError": _Mishap("upstream_unreachable", "upstream_disconnected", "the connection broke"),
    "TransportError": _Mishap("upstream_invalid_response", "upstream_protocol_error", "it speaks no proper HTTP"),
}


def fault_of(error: Exception, provider: str) -> Fault | None:
    """The fault for an exchange that broke, None where the provider answered with an error.

    Its cause is httpx's own exception: litellm's texts hold what the provider sent.
    """
    for one in filter(_of_httpx, _chain(error)):
        for cls in type(one).__mro__:
            if mishap := _MISHAPS.get(cls.__name__):
                fault = Fault(mishap.kind, f"upstream {provider}: {mishap.text}", code=mishap.code)
                fault.__cause__ = one
                return fault
    if 300 <= _status(error) < 400:
        text = f"upstream {provider}: it redirects, which is not followed"
        return Fault("upstream_invalid_response", text, code="upstream_redirect")
    return None


def answered(error: Exception) -> Answered:
    """The provider's answer, as far as litellm kept it; of its own refusals, the sentence."""
    status = _status(error)
    text = _SUFFIX.sub("", _PREFIX.sub("", str(getattr(error, "message", "") or error)))
    return Answered(status, _headers(error), _embedded(text) or _sentence(error, text, status))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and those that it came from, the first cause last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = getattr(error, "original_exception", None) or error.__cause__ or error.__context__


def _of_httpx(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("httpx", "httpx2")


def _status(error: Exception) -> int:
    """The provider's own status: the innermost that is one."""
    found = 0
    for one in _chain(error):
        status = getattr(one, "status_code", None) or getattr(getattr(one, "response", None), "status_code", None)
        found = status if isinstance(status, int) and 300 <= status < 600 else found
    return found or 502


def _headers(error: Exception) -> Headers:
    for one in _chain(error):
        for source in (getattr(one, "litellm_response_headers", None), getattr(one, "headers", None)):
            if isinstance(source, Mapping) and (kept := {name: source[name] for name in _HEADERS if name in source}):
                return kept
    return {}


def _embedded(text: str) -> JsonObject | None:
    """The JSON object that stands in the text, where it holds one; of bytes litellm keeps Python's notation."""
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


def _sentence(error: Exception, text: str, status: int) -> JsonObject:
    unsupported = type(error).__name__ == "UnsupportedParamsError"
    code: Any = "unsupported_parameter" if unsupported else getattr(error, "code", None)
    kind: Any = "invalid_request_error" if unsupported else getattr(error, "type", None)
    param: Any = getattr(error, "param", None)
    text = _ADVICE.sub("", text)
    return {"error": {"message": text, "type": kind, "param": param, "code": code, "status": status}}
