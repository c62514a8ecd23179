"""Makes the called verbs of a chat dialect from data: `CALLED = chat_called(RULES, path="/chat/completions")`."""

from __future__ import annotations

from typing import Unpack

from dragoman.adapters.call import Context, JsonObject, Replay, Reply
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.request_writer import RequestOptions, request_writer
from dragoman.adapters.common.token_limits import TokenLimitRule
from dragoman.adapters.dialect import Called
from dragoman.adapters.request_properties import HUB_CHAT

from .call_signatures import drop_foreign_signatures, sign_calls
from .citations import drop_citations
from .messages import are_plain
from .replay import replay_reasoning
from .reply import ChatStreamReader, read_chat_reply
from .spoken_answers import write_transcripts

__all__ = ["chat_called"]


def chat_called(
    rules: ReplyRules,
    *,
    replay: Replay = "keep",
    reads_citations: bool = False,
    reads_audio: bool = False,
    **options: Unpack[RequestOptions],
) -> Called:
    """The verbs toward a provider that speaks chat.

    Requests are fitted to the schema `<dialect>/chat.request`. Unless the options say otherwise, their path is
    `/chat/completions`, and the limit on tokens keeps its name. `replay` is what the dialect does with the reasoning of
    earlier turns unless something else is known of the target. Unless the dialect `reads_citations`, those of earlier
    answers are dropped; unless it `reads_audio` by its id, what they said becomes text.
    """
    rewrite_rest = options.get("rewrite")

    def rewrite(body: JsonObject, ctx: Context) -> None:
        if not are_plain(body["messages"]):
            body["messages"] = replay_reasoning(body["messages"], ctx, replay)
            body["messages"] = sign_calls(drop_foreign_signatures(body["messages"], ctx), ctx)
            body["messages"] = write_transcripts(body["messages"], ctx, reads_ids=reads_audio)
            if not reads_citations:
                body["messages"] = drop_citations(body["messages"], ctx)
        if rewrite_rest is not None:
            rewrite_rest(body, ctx)

    def read_reply(reply: Reply, ctx: Context) -> JsonObject:
        return read_chat_reply(reply, rules, ctx)

    def read_stream(ctx: Context) -> ChatStreamReader:
        return ChatStreamReader(rules, ctx)

    options["rewrite"] = rewrite
    if rewrite_rest is None:
        options["leaves"] = _has_plain_messages
    options.setdefault("path", "/chat/completions")
    options.setdefault("token_limit", TokenLimitRule(default=None))
    write_request = request_writer(f"{rules.dialect}/chat.request", HUB_CHAT, **options)
    return Called(write_request, read_reply, read_stream, rules.read_fault)


def _has_plain_messages(request: JsonObject) -> bool:
    return are_plain(request["messages"])
