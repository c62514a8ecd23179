"""The contract cases of the quirks: for each client's protocol and each form of the server's answer one case."""

from __future__ import annotations

from collections.abc import Iterator

from .json_types import JsonObject, JsonValue
from .quirk_files import Quirk, load_quirks

__all__ = ["iterate_quirk_cases", "name_case"]

_FUNCTIONS: list[JsonObject] = [
    {"name": name, "description": name, "parameters": {"type": "object"}} for name in ("read", "write_file", "search")
]
_ASKS: dict[str, JsonObject] = {
    "text": {},
    "tools": {"tools": [{"type": "function", "function": function} for function in _FUNCTIONS]},
    "usage": {"stream_options": {"include_usage": True}},
    "two": {"n": 2},
    "logprobs": {"logprobs": True},
}
_RESPONSES_ASKS: dict[str, JsonObject] = {
    "tools": {"tools": [{"type": "function", **function} for function in _FUNCTIONS]},
}
_RESULTS = ("the client gets the answer", "the client gets an error")
_ERROR_STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)
"""A failure must stay one. Which of these statuses it has is advice: a proxy may keep the provider's."""
_STATUSES = {"stop": "completed", "tool_calls": "completed", "length": "max_output_tokens"}
"""A finish reason -> the status of a response, or the reason why it is incomplete."""


def iterate_quirk_cases() -> Iterator[JsonObject]:
    """Make the texts of the cases, in the form of case files."""
    for quirk in load_quirks().values():
        for protocol in quirk.clients:
            yield from (_build_case(quirk, protocol, form) for form in quirk.forms)


def name_case(quirk: Quirk, protocol: str, form: str) -> str:
    return f"{protocol}/quirks/{quirk.name}/{form}"


def _build_case(quirk: Quirk, protocol: str, form: str) -> JsonObject:
    request: JsonObject = {"body": _build_request(quirk, protocol, form == "streamed")}
    upstream = {"script": [f"quirk(name={quirk.name})"], "protocol": quirk.protocol}
    expect = (_expect_error if quirk.is_error else _expect_answer)(quirk, protocol, form == "streamed")
    return {
        "id": name_case(quirk, protocol, form),
        "title": f"Quirk: {quirk.title.rstrip('.')}; {_RESULTS[quirk.is_error]}",
        "level": "MUST",
        "source": quirk.source,
        "protocol": protocol,
        "dialects": ["openai"],
        "upstreams": [quirk.upstream],
        "steps": [{"request": request, "upstream": upstream, "expect": expect}],
    }


def _build_request(quirk: Quirk, protocol: str, streamed: bool) -> JsonObject:
    if protocol == "embeddings":
        return {"input": ["hello"], "encoding_format": "base64"}
    stream = {"stream": True} if streamed else {}
    if protocol == "responses":
        return {
            "input": "hello",
            "max_output_tokens": 64,
            "store": False,
            **_RESPONSES_ASKS.get(quirk.ask, {}),
            **stream,
        }
    said = {"prompt": "hello"} if protocol == "completions" else {"messages": [{"role": "user", "content": "hello"}]}
    asked = {key: value for key, value in _ASKS[quirk.ask].items() if streamed or key != "stream_options"}
    return {**said, "max_tokens": 64, **asked, **stream}


def _expect_error(quirk: Quirk, protocol: str, streamed: bool) -> JsonObject:
    words = (("status", "status"), ("code", "error_code"), ("message", "error_says"))
    says = [{check: quirk.expect[key]} for key, check in words if key in quirk.expect]
    if streamed and quirk.status == 200:
        advice = ["no_done"] if protocol != "responses" else []
        return {"status": [200, *_ERROR_STATUSES], "checks": ["error_event"], "should": advice}
    return {"status": [*_ERROR_STATUSES], "checks": ["error_shape"], "should": says}


def _expect_answer(quirk: Quirk, protocol: str, streamed: bool) -> JsonObject:
    expect = quirk.expect
    checks: list[JsonValue] = [*_list_form_checks(protocol, streamed), *_list_content_checks(expect, protocol)]
    own = expect.get("checks", []) if protocol == quirk.protocol else []
    reasoning = [{"reasoning_is": expect["reasoning"]}] if "reasoning" in expect else []  # OpenAI's chat has none
    return {"status": 200, "checks": [*checks, *own], "should": [*reasoning, *_list_form_advice(protocol, streamed)]}


def _list_form_checks(protocol: str, streamed: bool) -> list[JsonValue]:
    done = ["done"] if protocol != "responses" else []
    return ["sse.framing", "one_terminal", *done] if streamed else []


def _list_form_advice(protocol: str, streamed: bool) -> list[JsonValue]:
    """The checks of form that cases of their own judge: a proxy that breaks one of them breaks it in every reply."""
    if not streamed:
        return [{"if_ok": {"schema": "reply"}}]
    own = ["items_paired", "deltas_equal_final"] if protocol == "responses" else ["ids_stable"]
    return [{"if_ok": {"schema": "event"}}, *own]


def _list_content_checks(expect: JsonObject, protocol: str) -> Iterator[JsonValue]:
    for key, check in (("text", "text_is"), ("usage", "usage_is")):
        if key in expect:
            yield {check: expect[key]}
    if "calls" in expect:
        yield {"calls_are": [{"name": one["name"], "arguments": one["arguments"]} for one in expect["calls"]]}
        yield "tool_ids_unique"
    if protocol != "embeddings":
        finish = expect.get("finish", "tool_calls" if "calls" in expect else "stop")
        yield {"finish_reason": [_STATUSES.get(finish, finish) if protocol == "responses" else finish]}
