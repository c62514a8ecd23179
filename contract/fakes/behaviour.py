"""One way in which a fake answers: the answer of its model, and the steps that make the reply of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonObject

from . import answers
from .answers import Answer, ModelRequest
from .completions import build_completion_documents
from .edits import Edit
from .embeddings import build_embedding_documents
from .forms import build_chat_documents, load_reply_form, serialize_documents
from .framing import Framing
from .messages import build_message_documents, build_token_count
from .responses import build_response_documents
from .wire import Reply

__all__ = ["Behaviour", "answer_with_finish_reason"]

_DOCUMENT_BUILDERS: Mapping[str, Callable[[Answer, ModelRequest], list[JsonObject]]] = {
    "chat": build_chat_documents,
    "completions": build_completion_documents,
    "count_tokens": build_token_count,
    "embeddings": build_embedding_documents,
    "messages": build_message_documents,
    "responses": build_response_documents,
}


def _keep_documents(found: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
    return found


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One way to answer. Either `whole` builds the reply, or three steps do: `answer` makes the model's answer, `edit`
    alters the JSON of chat and completions (`embedding_edit` that of embeddings, `response_edit` that of Responses,
    `message_edit` that of Messages), and `framing` alters the bytes. `args` are the arguments with their defaults; a
    numeric default requires a number. `dialects` are the dialects that have this behaviour, None if all do; `stream`
    overrides the request's `stream`."""

    description: str
    answer: Callable[[ModelRequest], Answer] = answers.answer_with_text
    edit: Edit = _keep_documents
    embedding_edit: Edit = _keep_documents
    response_edit: Edit = _keep_documents
    message_edit: Edit = _keep_documents
    framing: Framing | None = None
    whole: Callable[[ModelRequest], Reply] | None = None
    args: Mapping[str, float | str] = field(default_factory=dict)
    dialects: tuple[str, ...] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: bool | None = None

    def is_noop(self, protocol: str) -> bool:
        """Whether this behaviour alters the JSON of chat, but not that of the protocol."""
        return self.edit is not _keep_documents and self._find_edit(protocol) is _keep_documents

    def build_reply(self, request: ModelRequest) -> Reply:
        if self.whole is not None:
            return self.whole(request)
        if self.stream is not None:
            request = replace(request, stream=self.stream)
        documents = _DOCUMENT_BUILDERS[request.protocol](self.answer(request), request)
        frames = serialize_documents(self._find_edit(request.protocol)(documents, request), request)
        steps = tuple(frames) if self.framing is None else self.framing(frames, request)
        return Reply(self.status, {**_build_headers(request), **self.headers}, steps)

    def _find_edit(self, protocol: str) -> Edit:
        edits_by_protocol = {
            "count_tokens": _keep_documents,
            "embeddings": self.embedding_edit,
            "messages": self.message_edit,
            "responses": self.response_edit,
        }
        return edits_by_protocol.get(protocol, self.edit)


def _build_headers(request: ModelRequest) -> dict[str, str]:
    form = load_reply_form(request.dialect, request.profile)
    kind = {"Content-Type": "text/event-stream" if request.stream else "application/json"}
    closing = {"Connection": "close"} if form.closes and not request.stream else {}
    headers = load_dialect(request.dialect).reply_form(request.protocol, request.profile).get("headers", form.headers)
    own = {
        name: text.format(number=request.number, model=quote(request.model, safe="/:@"))
        for name, text in headers.items()
    }
    return {**kind, **closing, **own}


def answer_with_finish_reason(finish: str, text: str | None = None) -> Callable[[ModelRequest], Answer]:
    """Make an answer with that finish reason, and with that text if one is given."""

    def answer(request: ModelRequest) -> Answer:
        sentence = answers.answer_with_text(request)
        return replace(sentence, finish=finish, text=sentence.text if text is None else text)

    return answer
