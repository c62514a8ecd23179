"""The table of behaviours of a fake, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from dragoman.contract.dialects import list_dialects_with, load_dialect

from . import answers, edits, framing
from .answers import Answer, ModelRequest
from .behaviour import Behaviour, answer_with_finish_reason
from .embeddings import EMBEDDING_DIALECTS, EMBEDDING_EDITS
from .errors import Problem, build_json_reply, build_text_reply, reason_phrase, write_error
from .forms import load_reply_form
from .message_behaviours import MESSAGE_BEHAVIOURS
from .message_edits import (
    add_huge_block,
    cut_message,
    drop_content,
    drop_message_id,
    number_blocks_from_one,
    set_message_usage,
    zero_block_indexes,
)
from .observed_errors import OBSERVED_ERRORS
from .quirks import play_quirk
from .wire import Reply

__all__ = ["BEHAVIOURS", "Behaviour"]


def _answer_cut_short(request: ModelRequest) -> Answer:
    text = answers.answer_with_text(request).text
    return Answer(text=text[: len(text) // 2], finish="length")


def _answer_with_err_msg(request: ModelRequest) -> Answer:
    key = load_reply_form(request.dialect, request.profile).failure_text
    extra = {key: request.text_arg("err_msg")} if key else {}
    return Answer(finish="stop_sequence", extra=extra)


def _answer_with_calls_and_stop(request: ModelRequest) -> Answer:
    return replace(answers.answer_with_calls(request), finish="stop")


def _build_status_behaviour(status: int) -> Behaviour:
    def whole(request: ModelRequest) -> Reply:
        message = request.text_arg("message") or f"The fake answers {status} {reason_phrase(status)} on purpose"
        waiting = {"Retry-After": request.text_arg("retry_after")} if request.args["retry_after"] else {}
        return write_error(request.dialect, request.profile, Problem(status, message, headers=waiting))

    return Behaviour(f"{status} in the dialect's own form", whole=whole, args={"message": "", "retry_after": ""})


def _reply_with_rate_limit(request: ModelRequest) -> Reply:
    waiting = {"Retry-After": request.text_arg("retry_after")}
    return write_error(request.dialect, request.profile, Problem(429, "Too many requests to the fake", headers=waiting))


def _reply_with_unknown_model(request: ModelRequest) -> Reply:
    status = load_dialect(request.dialect).errors.statuses.get("unknown_model", 404)
    return write_error(request.dialect, request.profile, Problem(status, f"Model not found: {request.model}"))


def _refuse_parameter(request: ModelRequest) -> Reply:
    """Refuse the parameter `param`. Some dialects name it only in the message; the others also send the path."""
    param = request.text_arg("param")
    if param not in request.original:
        return _ANSWERS["text"].build_reply(replace(request, args=_TEXT))
    message = f"Model {request.model} does not support the {param} parameter."
    path = (param,) if load_dialect(request.dialect).errors.names_parameters else ()
    return write_error(request.dialect, request.profile, Problem(400, message, path, request.original[param]))


def _reply_with_redirect(request: ModelRequest) -> Reply:
    return build_json_reply(307, {}, {"Location": request.text_arg("to") or f"{request.origin}/_fake/canary"})


def _reply_with_html(_request: ModelRequest) -> Reply:
    return build_text_reply(
        200, "<!doctype html><title>Sign in</title><pre>Please sign in</pre>", "text/html; charset=utf-8"
    )


_TEXT: Mapping[str, float | str] = {"words": 0.0, "say": ""}
_DELAY: Mapping[str, float | str] = {"delay": 0.05, "words": 0.0}
_SIZE: Mapping[str, float | str] = {"size": 80.0}
_STATUS: Mapping[str, float | str] = {"status": 500.0}
_SMUGGLED = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"

_CALL: Mapping[str, float | str] = {"name": "", "arguments": ""}
_ANSWERS = {
    "as-asked": Behaviour(
        "as a model: a tool call if the request forces one or the user names a tool, the tool results, "
        "JSON or reasoning if requested, else a text",
        answers.answer_as_model,
    ),
    "text": Behaviour("a fixed sentence with letters of many scripts, and a usage; n of them if requested", args=_TEXT),
    "tools": Behaviour(
        "as `call`; a text once the request has the tool results", answers.answer_with_call_or_results, args=_CALL
    ),
    "call": Behaviour("a call of the tool `name`, even after tool results", answers.answer_with_call, args=_CALL),
    "parallel-tools": Behaviour(
        "two calls, their arguments streamed alternately", partial(answers.answer_with_calls, count=2)
    ),
    "reasoning": Behaviour("reasoning before the text, in the dialect's form", answers.answer_with_reasoning),
    "length": Behaviour("a text cut short, finish reason length", _answer_cut_short),
    "content-filter": Behaviour("finish reason content_filter", answer_with_finish_reason("content_filter")),
    "refusal": Behaviour(
        "a refusal: in its own field if the dialect has one, else as text", answers.answer_with_refusal
    ),
    "json": Behaviour("JSON text that matches the request's response_format", answers.answer_with_json),
}
_TIMING = {
    "slow": Behaviour("`delay` seconds after each event", framing=framing.delay_each_frame, args=_DELAY),
    "slow-first": Behaviour("`delay` seconds before the first byte", framing=framing.delay_first_frame, args=_DELAY),
    "pause": Behaviour(
        "`delay` seconds of silence in the middle of a stream", framing=framing.pause_halfway, args=_DELAY
    ),
    "hang": Behaviour("never answers", framing=framing.hang_before_reply),
    "hang-after-headers": Behaviour("sends the head of a reply, then nothing", framing=framing.hang_after_headers),
    "stall": Behaviour("stops in the middle and keeps the connection open", framing=framing.hang_halfway),
}
_CUTS = {
    "cut": Behaviour("connection reset in the middle", framing=framing.reset_halfway),
    "cut-fin": Behaviour(
        "connection closed in the middle, before the end of the HTTP message", framing=framing.close_halfway
    ),
    "cut-clean": Behaviour(
        "complete HTTP message without finish reason and [DONE]",
        edit=edits.drop_ending,
        response_edit=edits.keep_first_half,
        message_edit=cut_message,
        framing=framing.drop_done_event,
    ),
    "cut-before": Behaviour("connection closed without a reply", framing=framing.close_before_reply),
    "cut-body": Behaviour(
        "body shorter than its Content-Length", framing=framing.close_inside_body, headers={"Content-Length": "1000000"}
    ),
    "no-done": Behaviour("a finish reason, but no [DONE]", framing=framing.drop_done_event),
}
_EVENTS = {
    "malformed-event": Behaviour("one event is broken JSON", framing=framing.break_one_event),
    "bare-text": Behaviour(
        "half a stream, then MindIE's bare line about a timeout",
        framing=framing.end_with_bare_text,
        args={"reason": "server tokenTimeout"},
    ),
    "bare-json": Behaviour("events without the prefix `data:`", framing=framing.drop_data_prefix),
    "error-event": Behaviour(
        "half a stream, then the dialect's error object", framing=framing.end_with_error_event, args=_STATUS
    ),
    "first-error": Behaviour("status 200 with only an error object", framing=framing.send_only_error, args=_STATUS),
    "split-utf8": Behaviour("one byte at a time", framing=framing.split_into_bytes),
    "crlf": Behaviour("lines end with CR LF", framing=framing.replace_line_ends(b"\r\n")),
    "cr": Behaviour("lines end with CR", framing=framing.replace_line_ends(b"\r")),
    "bom": Behaviour("a byte order mark first", framing=framing.prepend_bom),
    "comments": Behaviour("a keep-alive comment before each event", framing=framing.add_comments),
    "multiline-data": Behaviour("each event over several data lines", framing=framing.split_data_lines),
    "two-done": Behaviour("[DONE] twice", framing=framing.repeat_done_event),
    "after-done": Behaviour("more events after [DONE]", framing=framing.repeat_events_after_end),
    "huge-event": Behaviour(
        "one event of `size` MiB", edit=edits.add_huge_text, message_edit=add_huge_block, args={"size": 5.0}
    ),
    "huge-body": Behaviour("`size` MiB of body", framing=framing.send_large_body, args=_SIZE),
    "gzip": Behaviour("the reply gzip-encoded", framing=framing.compress_frames, headers={"Content-Encoding": "gzip"}),
    "gzip-bomb": Behaviour(
        "`size` MiB of body in a few kB of gzip",
        framing=framing.send_gzip_bomb,
        args=_SIZE,
        headers={"Content-Encoding": "gzip"},
    ),
}
_QUIRKS = {
    "role-every-delta": Behaviour(
        "the role in each delta", edit=edits.edit_each_part(lambda part, _: part.update(role="assistant"))
    ),
    "list-content": Behaviour("content as a list of parts", edit=edits.edit_each_part(edits.write_content_as_list)),
    "no-index": Behaviour("tool call deltas without index", answers.answer_with_calls, edits.drop_call_indexes),
    "index-from-one": Behaviour(
        "tool call deltas with the indexes 1, 3, ...",
        partial(answers.answer_with_calls, count=2),
        edits.number_calls_from_one,
        message_edit=number_blocks_from_one,
    ),
    "index-zero": Behaviour(
        "two calls, each delta with index 0 and its call's id",
        partial(answers.answer_with_calls, count=2),
        edits.zero_call_indexes,
        message_edit=zero_block_indexes,
    ),
    "repeated-ids": Behaviour("id and name in each tool call delta", answers.answer_with_calls, edits.repeat_call_ids),
    "placeholder-arguments": Behaviour(
        "the arguments start with `{}`", answers.answer_with_calls, edits.begin_arguments_with_placeholder
    ),
    "arguments-object": Behaviour(
        "tool call arguments as an object", answers.answer_with_calls, edits.write_arguments_as_object
    ),
    "empty-tool-calls": Behaviour(
        "tool_calls: [] on a text", edit=edits.edit_each_part(lambda part, _: part.update(tool_calls=[]))
    ),
    "finish-stop-with-tools": Behaviour("tool calls with finish reason stop", _answer_with_calls_and_stop),
    "finish-in-last-delta": Behaviour(
        "the finish reason in the chunk of the last piece of the arguments",
        answers.answer_with_calls,
        edits.merge_finish_reason,
    ),
    "unknown-finish": Behaviour("an unknown finish reason", answer_with_finish_reason("tired")),
    "empty-finish": Behaviour("an empty finish reason", answer_with_finish_reason("")),
    "empty-choices": Behaviour(
        "Azure's chunks of filter results, with no choices or no delta", edit=edits.add_empty_choices
    ),
    "no-choices": Behaviour("empty choices, or no content", edit=edits.drop_choices, message_edit=drop_content),
    "usage-every-chunk": Behaviour("a usage on each chunk, with nulls", edit=edits.add_partial_usage),
    "usage-in-last": Behaviour("the usage in the last chunk, requested or not", edit=edits.move_usage_to_last_chunk),
    "usage-apart": Behaviour(
        "a usage that differs from the text; a stream has it in a chunk with an empty choice",
        edit=edits.move_usage_to_own_chunk,
        message_edit=set_message_usage(input_tokens=1065, output_tokens=2251),
    ),
    "created-varies": Behaviour("a different created in each chunk", edit=edits.vary_creation_time),
    "id-varies": Behaviour("a different id in each chunk", edit=edits.vary_id),
    "created-float": Behaviour("created with a fraction", edit=edits.set_fields(created=1750000000.5)),
    "wrong-object": Behaviour("a wrong object name", edit=edits.set_fields(object="list")),
    "missing-id": Behaviour("no id", edit=edits.drop_fields("id"), message_edit=drop_message_id),
    "plural-object": Behaviour(
        "chat.completions, and extra_fields as a string",
        edit=edits.use_plural_object,
        dialects=list_dialects_with("plural-object"),
    ),
    "eos-token": Behaviour(
        "finish reason eos_token", answer_with_finish_reason("eos_token"), dialects=list_dialects_with("eos-token")
    ),
    "stop-sequence": Behaviour(
        "no text, finish reason stop_sequence, and MindIE's err_msg",
        _answer_with_err_msg,
        dialects=list_dialects_with("stop-sequence"),
        args={"err_msg": "Input validation failed"},
    ),
    "stop-sequence-partial": Behaviour(
        "a text, finish reason stop_sequence",
        answer_with_finish_reason("stop_sequence"),
        dialects=list_dialects_with("stop-sequence-partial"),
    ),
    "invalid-flag": Behaviour(
        "finish reason `invalid flag`",
        answer_with_finish_reason("invalid flag"),
        dialects=list_dialects_with("invalid-flag"),
    ),
}
_BODIES = {
    "json-for-stream": Behaviour("one JSON body although a stream is requested", stream=False),
    "stream-for-json": Behaviour("a stream although one JSON body is requested", stream=True),
    "html": Behaviour("200 with an HTML page", whole=_reply_with_html),
    "not-json": Behaviour(
        "200 with text and the content type of JSON", whole=lambda _: build_text_reply(200, "ok", "application/json")
    ),
    "empty": Behaviour("200 with an empty body", whole=lambda _: build_text_reply(200, "", "application/json")),
    "redirect": Behaviour("307 to another URL", whole=_reply_with_redirect, args={"to": ""}),
    "garbage": Behaviour(
        "bytes that are not HTTP", whole=lambda _: Reply(raw=True, steps=(b"\x00\xff SSH-2.0-fake\r\n",))
    ),
    "huge-header": Behaviour("a header of 64 kB", whole=framing.build_raw_reply(b"x-fake: " + b"x" * 65536)),
    "folded-header": Behaviour("a header folded over two lines", whole=framing.build_raw_reply(b"x-fake: a\r\n b")),
    "two-lengths": Behaviour("two Content-Length headers", whole=framing.build_raw_reply(b"Content-Length: 99")),
    "extra-bytes": Behaviour("a second reply without a request", whole=framing.build_raw_reply(more=_SMUGGLED)),
}
_PLAYED = {
    "quirk": Behaviour("a quirk of a real server, by its name (docs/quirks.md)", whole=play_quirk, args={"name": ""})
}
_VECTORS = {
    name: Behaviour(description, embedding_edit=edit, dialects=EMBEDDING_DIALECTS)
    for name, (description, edit) in EMBEDDING_EDITS.items()
}
_STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 424, 429, 500, 502, 503, 504, 529)
_ERRORS = {
    **{f"status-{status}": _build_status_behaviour(status) for status in _STATUSES},
    "rate-limit": Behaviour("429 with Retry-After", whole=_reply_with_rate_limit, args={"retry_after": "2"}),
    "refuses": Behaviour(
        "400 for the parameter `param`, which the model does not support, else a text",
        whole=_refuse_parameter,
        args={"param": "temperature"},
    ),
    "model-not-found": Behaviour("the dialect's error for an unknown model", whole=_reply_with_unknown_model),
    **{
        name: Behaviour(
            error.description,
            whole=error,
            dialects=(error.dialect,),
            args={"param": error.param} if error.param else {},
        )
        for name, error in OBSERVED_ERRORS.items()
    },
}

BEHAVIOURS: Mapping[str, Behaviour] = MappingProxyType(
    {
        **_ANSWERS,
        **_TIMING,
        **_CUTS,
        **_EVENTS,
        **_QUIRKS,
        **MESSAGE_BEHAVIOURS,
        **_PLAYED,
        **_VECTORS,
        **_BODIES,
        **_ERRORS,
    }
)
