"""What a fake can be told to do: a table of names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from urllib.parse import quote

from dragoman.contract.dialects import dialect, dialects_with

from . import answers, edits, framing
from .answers import Answer, Ask, Json
from .edits import Edit
from .errors import Problem, json_reply, native, phrase, text_reply
from .forms import documents, form_of, frames
from .framing import Framing
from .odd import ODD
from .responses import response_documents
from .texts import text_documents
from .vectors import EDITS, EMBEDDING, vector_documents
from .wire import Reply

__all__ = ["BEHAVIOURS", "Behaviour"]


_DOCUMENTS: Mapping[str, Callable[[Answer, Ask], list[Json]]] = {
    "chat": documents,
    "completions": text_documents,
    "embeddings": vector_documents,
    "responses": response_documents,
}


def _as_is(found: list[Json], _ask: Ask) -> list[Json]:
    return found


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One way to answer. Either `whole` is the reply, or it is made in three steps: `answer` says what the model said,
    `edit` alters the JSON of chat and completions (`vectors` that of embeddings, `events` that of Responses), `framing`
    the bytes. `args` are the arguments with their defaults (a default that is a number wants a number), `only` the
    dialects that have this, where not all do; `stream` overrides the request's."""

    about: str
    answer: Callable[[Ask], Answer] = answers.say
    edit: Edit = _as_is
    vectors: Edit = _as_is
    events: Edit = _as_is
    framing: Framing | None = None
    whole: Callable[[Ask], Reply] | None = None
    args: Mapping[str, float | str] = field(default_factory=dict)
    only: tuple[str, ...] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: bool | None = None

    def reply(self, ask: Ask) -> Reply:
        if self.whole is not None:
            return self.whole(ask)
        if self.stream is not None:
            ask = replace(ask, stream=self.stream)
        edit = {"embeddings": self.vectors, "responses": self.events}.get(ask.protocol, self.edit)
        found = frames(edit(_DOCUMENTS[ask.protocol](self.answer(ask), ask), ask), ask)
        steps = tuple(found) if self.framing is None else self.framing(found, ask)
        return Reply(self.status, {**_headers(ask), **self.headers}, steps)


def _headers(ask: Ask) -> dict[str, str]:
    form = form_of(ask.dialect, ask.profile)
    kind = {"Content-Type": "text/event-stream" if ask.stream else "application/json"}
    closing = {"Connection": "close"} if form.closes and not ask.stream else {}
    own = {
        name: text.format(number=ask.number, model=quote(ask.model, safe="/:@")) for name, text in form.headers.items()
    }
    return {**kind, **closing, **own}


def _ending(finish: str, text: str | None = None) -> Callable[[Ask], Answer]:
    def answer(ask: Ask) -> Answer:
        said = answers.say(ask)
        return replace(said, finish=finish, text=said.text if text is None else text)

    return answer


def _short(ask: Ask) -> Answer:
    text = answers.say(ask).text
    return Answer(text=text[: len(text) // 2], finish="length")


def _failed(ask: Ask) -> Answer:
    key = form_of(ask.dialect, ask.profile).failure_text
    extra = {key: ask.word("err_msg")} if key else {}
    return Answer(finish="stop_sequence", extra=extra)


def _stopped_with_calls(ask: Ask) -> Answer:
    return replace(answers.calls(ask), finish="stop")


def _status(status: int) -> Behaviour:
    def whole(ask: Ask) -> Reply:
        message = ask.word("message") or f"The fake answers {status} {phrase(status)} on purpose"
        waiting = {"Retry-After": ask.word("retry_after")} if ask.args["retry_after"] else {}
        return native(ask.dialect, ask.profile, Problem(status, message, headers=waiting))

    return Behaviour(f"{status} in the dialect's own form", whole=whole, args={"message": "", "retry_after": ""})


def _rate_limit(ask: Ask) -> Reply:
    waiting = {"Retry-After": ask.word("retry_after")}
    return native(ask.dialect, ask.profile, Problem(429, "Too many requests to the fake", headers=waiting))


def _unknown_model(ask: Ask) -> Reply:
    status = dialect(ask.dialect).errors.statuses.get("unknown_model", 404)
    return native(ask.dialect, ask.profile, Problem(status, f"Model not found: {ask.model}"))


def _refused(ask: Ask) -> Reply:
    """The refusal of a parameter; some services name it only in the sentence."""
    param = ask.word("param")
    if param not in ask.asked:
        return _SAYINGS["text"].reply(replace(ask, args=_TEXT))
    message = f"Model {ask.model} does not support the {param} parameter."
    place = (param,) if dialect(ask.dialect).errors.names_parameters else ()
    return native(ask.dialect, ask.profile, Problem(400, message, place, ask.asked[param]))


def _redirect(ask: Ask) -> Reply:
    return json_reply(307, {}, {"Location": ask.word("to") or f"{ask.origin}/_fake/canary"})


def _html(_ask: Ask) -> Reply:
    return text_reply(200, "<!doctype html><title>Sign in</title><pre>Please sign in</pre>", "text/html; charset=utf-8")


_TEXT: Mapping[str, float | str] = {"words": 0.0, "say": ""}
_DELAY: Mapping[str, float | str] = {"delay": 0.05, "words": 0.0}
_SIZE: Mapping[str, float | str] = {"size": 80.0}
_STATUS: Mapping[str, float | str] = {"status": 500.0}
_SMUGGLED = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"

_CALL: Mapping[str, float | str] = {"name": "", "arguments": ""}
_SAYINGS = {
    "as-asked": Behaviour(
        "what a model would do: a call where the request forces one or its user names a tool, what the tools said, "
        "JSON or reasoning where asked for, else the text",
        answers.attend,
    ),
    "text": Behaviour("a fixed sentence with letters of many scripts, and a usage; n of them where asked", args=_TEXT),
    "tools": Behaviour("`call`; in text what the tools said, once they did", answers.use, args=_CALL),
    "call": Behaviour("a call of the tool `name`, whatever was said before", answers.call, args=_CALL),
    "parallel-tools": Behaviour("two calls, their arguments streamed in turns", partial(answers.calls, count=2)),
    "reasoning": Behaviour("reasoning before the text, as the dialect writes it", answers.think),
    "length": Behaviour("a text cut short, finish reason length", _short),
    "content-filter": Behaviour("finish reason content_filter", _ending("content_filter")),
    "refusal": Behaviour("a refusal: a field of its own if the dialect has one, else text", answers.refusal),
    "json": Behaviour("JSON text that fits the request's response_format", answers.filled),
}
_TIMING = {
    "slow": Behaviour("`delay` seconds after each event", framing=framing.slow, args=_DELAY),
    "slow-first": Behaviour("`delay` seconds before the first byte", framing=framing.slow_first, args=_DELAY),
    "pause": Behaviour("`delay` seconds of silence in the middle of a stream", framing=framing.pause, args=_DELAY),
    "hang": Behaviour("never answers", framing=framing.hang),
    "hang-after-headers": Behaviour("sends the head of a reply, then nothing", framing=framing.silent),
    "stall": Behaviour("stops in the middle and keeps the connection", framing=framing.stall),
}
_CUTS = {
    "cut": Behaviour("connection reset in the middle", framing=framing.cut),
    "cut-fin": Behaviour("connection closed in the middle, against HTTP's framing", framing=framing.cut_fin),
    "cut-clean": Behaviour(
        "ends in order, with no finish reason and no [DONE]",
        edit=edits.unfinished,
        events=edits.first_half,
        framing=framing.no_done,
    ),
    "cut-before": Behaviour("connection closed with no reply", framing=framing.cut_before),
    "cut-body": Behaviour(
        "body shorter than its Content-Length", framing=framing.cut_body, headers={"Content-Length": "1000000"}
    ),
    "no-done": Behaviour("a finish reason, but no [DONE]", framing=framing.no_done),
}
_EVENTS = {
    "malformed-event": Behaviour("one event is broken JSON", framing=framing.malformed),
    "bare-text": Behaviour(
        "half a stream, then MindIE's bare line about a timeout",
        framing=framing.bare_text,
        args={"reason": "server tokenTimeout"},
    ),
    "bare-json": Behaviour("events without the prefix `data:`", framing=framing.bare_json),
    "error-event": Behaviour(
        "half a stream, then the dialect's error object", framing=framing.error_event, args=_STATUS
    ),
    "first-error": Behaviour("status 200 and nothing but an error object", framing=framing.first_error, args=_STATUS),
    "split-utf8": Behaviour("one byte at a time", framing=framing.bytewise),
    "crlf": Behaviour("lines end with CR LF", framing=framing.line_ends(b"\r\n")),
    "cr": Behaviour("lines end with CR", framing=framing.line_ends(b"\r")),
    "bom": Behaviour("a byte order mark first", framing=framing.bom),
    "comments": Behaviour("a keep-alive comment before each event", framing=framing.comments),
    "multiline-data": Behaviour("each event over several data lines", framing=framing.multiline),
    "two-done": Behaviour("[DONE] twice", framing=framing.two_done),
    "after-done": Behaviour("more events after [DONE]", framing=framing.after_done),
    "huge-event": Behaviour("one event of `size` MiB", edit=edits.huge, args={"size": 5.0}),
    "huge-body": Behaviour("`size` MiB of body", framing=framing.flood, args=_SIZE),
    "gzip": Behaviour("the reply gzip-encoded", framing=framing.gzipped, headers={"Content-Encoding": "gzip"}),
    "gzip-bomb": Behaviour(
        "`size` MiB of body in a few kB of gzip",
        framing=framing.gzip_bomb,
        args=_SIZE,
        headers={"Content-Encoding": "gzip"},
    ),
}
_QUIRKS = {
    "role-every-delta": Behaviour(
        "the role in each delta", edit=edits.each(lambda part, _: part.update(role="assistant"))
    ),
    "list-content": Behaviour("content as a list of parts", edit=edits.each(edits.list_content)),
    "no-index": Behaviour("tool call deltas without index", answers.calls, edits.no_index),
    "index-from-one": Behaviour(
        "tool call deltas with the indexes 1, 3, ...", partial(answers.calls, count=2), edits.index_from_one
    ),
    "index-zero": Behaviour(
        "two calls, each delta with index 0 and its call's id", partial(answers.calls, count=2), edits.index_zero
    ),
    "repeated-ids": Behaviour("id and name in each tool call delta", answers.calls, edits.repeated_ids),
    "placeholder-arguments": Behaviour("the arguments start with `{}`", answers.calls, edits.placeholder_arguments),
    "arguments-object": Behaviour("tool call arguments as an object", answers.calls, edits.arguments_object),
    "empty-tool-calls": Behaviour(
        "tool_calls: [] on a text", edit=edits.each(lambda part, _: part.update(tool_calls=[]))
    ),
    "finish-stop-with-tools": Behaviour("tool calls with finish reason stop", _stopped_with_calls),
    "finish-beside": Behaviour(
        "the finish reason in the chunk of the last piece of the arguments", answers.calls, edits.finish_beside
    ),
    "unknown-finish": Behaviour("a finish reason that nobody knows", _ending("tired")),
    "empty-finish": Behaviour("an empty finish reason", _ending("")),
    "empty-choices": Behaviour(
        "Azure's chunks of filter results, with no choices or no delta", edit=edits.empty_choices
    ),
    "no-choices": Behaviour("nothing in choices", edit=edits.no_choices),
    "usage-every-chunk": Behaviour("a usage on each chunk, with nulls", edit=edits.partial_usage),
    "usage-in-last": Behaviour("the usage in the last chunk, asked for or not", edit=edits.usage_in_last),
    "usage-apart": Behaviour(
        "a usage that no count of the text gives, in a stream in a chunk with an empty choice", edit=edits.usage_apart
    ),
    "created-varies": Behaviour("another created in each chunk", edit=edits.created_varies),
    "id-varies": Behaviour("another id in each chunk", edit=edits.id_varies),
    "created-float": Behaviour("created with a fraction", edit=edits.every(created=1750000000.5)),
    "wrong-object": Behaviour("another object name", edit=edits.every(object="list")),
    "missing-id": Behaviour("no id", edit=edits.without("id")),
    "plural-object": Behaviour(
        "chat.completions, and extra_fields as a string", edit=edits.plural, only=dialects_with("plural-object")
    ),
    "eos-token": Behaviour("finish reason eos_token", _ending("eos_token"), only=dialects_with("eos-token")),
    "stop-sequence": Behaviour(
        "no text, finish reason stop_sequence, and MindIE's err_msg",
        _failed,
        only=dialects_with("stop-sequence"),
        args={"err_msg": "Input validation failed"},
    ),
    "stop-sequence-partial": Behaviour(
        "a text, finish reason stop_sequence", _ending("stop_sequence"), only=dialects_with("stop-sequence-partial")
    ),
    "invalid-flag": Behaviour(
        "finish reason `invalid flag`", _ending("invalid flag"), only=dialects_with("invalid-flag")
    ),
}
_BODIES = {
    "json-for-stream": Behaviour("one JSON body although a stream was asked for", stream=False),
    "stream-for-json": Behaviour("a stream although one JSON body was asked for", stream=True),
    "html": Behaviour("200 with an HTML page", whole=_html),
    "not-json": Behaviour(
        "200 with text that claims to be JSON", whole=lambda _: text_reply(200, "ok", "application/json")
    ),
    "empty": Behaviour("200 with nothing", whole=lambda _: text_reply(200, "", "application/json")),
    "redirect": Behaviour("307 to another address", whole=_redirect, args={"to": ""}),
    "garbage": Behaviour(
        "bytes that are not HTTP", whole=lambda _: Reply(raw=True, steps=(b"\x00\xff SSH-2.0-fake\r\n",))
    ),
    "huge-header": Behaviour("a header of 64 kB", whole=framing.raw_reply(b"x-fake: " + b"x" * 65536)),
    "folded-header": Behaviour("a header over two lines", whole=framing.raw_reply(b"x-fake: a\r\n b")),
    "two-lengths": Behaviour("two Content-Length headers", whole=framing.raw_reply(b"Content-Length: 99")),
    "extra-bytes": Behaviour("a second reply that nobody asked for", whole=framing.raw_reply(more=_SMUGGLED)),
}
_VECTORS = {name: Behaviour(about, vectors=edit, only=EMBEDDING) for name, (about, edit) in EDITS.items()}
_STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 424, 429, 500, 502, 503, 504, 529)
_ERRORS = {
    **{f"status-{status}": _status(status) for status in _STATUSES},
    "rate-limit": Behaviour("429 with Retry-After", whole=_rate_limit, args={"retry_after": "2"}),
    "refuses": Behaviour(
        "400 for the parameter `param`, which the model behind it does not take, else a text",
        whole=_refused,
        args={"param": "temperature"},
    ),
    "model-not-found": Behaviour("the dialect's way to say that it has no such model", whole=_unknown_model),
    **{
        name: Behaviour(odd.about, whole=odd, only=(odd.dialect,), args={"param": odd.param} if odd.param else {})
        for name, odd in ODD.items()
    },
}

BEHAVIOURS: Mapping[str, Behaviour] = MappingProxyType(
    {**_SAYINGS, **_TIMING, **_CUTS, **_EVENTS, **_QUIRKS, **_VECTORS, **_BODIES, **_ERRORS}
)
