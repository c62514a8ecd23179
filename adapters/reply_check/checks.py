"""The checks of chat, completions and Responses: where a request says what it wants, and a reply what it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from dragoman.adapters.call import JsonObject
from dragoman.adapters.request_properties import (
    HUB_CHAT,
    HUB_COMPLETIONS,
    HUB_MESSAGES,
    HUB_RESPONSES,
    TOKEN_LIMITS,
)
from dragoman.adapters.responses.built_in_tools import BUILT_IN_CALLS
from dragoman.adapters.streams import DeltaRun

from .check import ChoiceRecord, Mismatch, ReplyCheck, Wishes, list_objects, read_stop
from .messages_check import MessagesCheck

__all__ = ["CHECKED", "create_reply_check", "keeps_to_limit"]

_CONTENT_FILTER = "content_filter"
_UNREAD = ChoiceRecord()  # of choices that are only counted


class ChoiceCheck(ReplyCheck):
    """The check of a protocol whose replies have choices."""

    limits: ClassVar[tuple[str, ...]]
    """The fields of a request that limit the tokens; the first one that it has counts."""

    def __init__(self, request: JsonObject, *, judges_schema: bool, has_wishes: bool) -> None:
        super().__init__(request, judges_schema=judges_schema, has_wishes=has_wishes)
        self._choices: dict[Any, ChoiceRecord] = {}

    def add_reply(self, reply: JsonObject) -> None:
        """Take a whole reply: its choices are like those of a chunk."""
        self.add_chunk(reply)

    def add_chunk(self, chunk: JsonObject) -> None:
        """Take the choices and the usage of a chunk."""
        if isinstance(usage := chunk.get("usage"), dict):
            self.usage = usage
        choices = list_objects(chunk.get("choices"))
        if not self.has_wishes:
            for choice in choices:
                self._choices[_read_index(choice)] = _UNREAD
            return
        for choice in choices:
            record = self.find_choice(choice)
            record.has_logprobs |= choice.get("logprobs") is not None
            if isinstance(finish := choice.get("finish_reason"), str):
                record.finish = finish
            self.add_piece(record, choice)

    def add_run(self, run: DeltaRun) -> None:
        """Take coalesced texts of one choice."""
        record = self.find_choice(run.body["choices"][0])
        if run.place[-1] in ("content", "text"):
            record.has_text = True
            if self.wishes.need_text:
                record.text.add_fragments(run.texts)

    @abstractmethod
    def add_piece(self, record: ChoiceRecord, choice: JsonObject) -> None:
        """Take what a choice holds, whole or in pieces."""

    def add_text(self, record: ChoiceRecord, text: Any) -> None:
        """Take a piece of a choice's text."""
        if isinstance(text, str) and text:
            record.has_text = True
            if self.wishes.need_text:
                record.text.add(text)

    def find_choice(self, choice: JsonObject) -> ChoiceRecord:
        """The record of a choice, by its index."""
        index = _read_index(choice)
        record = self._choices.get(index)
        if record is None:
            record = self._choices[index] = ChoiceRecord()
        return record

    def find_mismatches(self) -> Iterator[Mismatch]:
        """Compare the number of choices, each choice, and the tokens."""
        given, wanted = len(self._choices), self.find_wanted_number()
        if wanted is not None and given != wanted:
            yield Mismatch(("n",), f"the provider gave {given} choices instead of {wanted}")
        for record in self._choices.values() if self.has_wishes else ():
            yield from self.compare_choice(record)
        for name in self.limits:
            if (limit := self.request.get(name)) is not None:
                yield from self.compare_tokens((name,), limit, self.usage.get("completion_tokens"), given)
                return

    def find_wanted_number(self) -> int | None:
        """The number of choices that the request asks for; None if any number will do."""
        wanted = self.request.get("n")
        return wanted if isinstance(wanted, int) else None


class ChatCheck(ChoiceCheck):
    """The check of chat."""

    limits = TOKEN_LIMITS[HUB_CHAT]

    def read_wishes(self, request: JsonObject) -> Wishes:
        """Read them from the request."""
        tool, no_tool = _read_tool_choice(request.get("tool_choice"))
        form = request.get("response_format")
        kind = form.get("type") if isinstance(form, dict) else None
        described = form.get("json_schema") if isinstance(form, dict) else None
        return Wishes(
            logprobs=("logprobs",) if request.get("logprobs") is True else None,
            tool=tool,
            no_tool=no_tool,
            one_call=request.get("parallel_tool_calls") is False,
            format=("response_format",) if kind in _JSON_FORMATS else None,
            schema=described.get("schema") if isinstance(described, dict) else None,
            stop=read_stop(request.get("stop")),
        )

    def add_piece(self, record: ChoiceRecord, choice: JsonObject) -> None:
        """Take a message or a delta."""
        held = choice.get("message", choice.get("delta"))
        if not isinstance(held, dict):
            return
        self.add_text(record, held.get("content"))
        record.is_refusal |= bool(held.get("refusal"))
        for call in list_objects(held.get("tool_calls")):
            if (name := _read_name(call)) is not None:
                record.calls.append(name)


class CompletionsCheck(ChoiceCheck):
    """The check of completions."""

    limits = TOKEN_LIMITS[HUB_COMPLETIONS]

    def read_wishes(self, request: JsonObject) -> Wishes:
        """Read them from the request."""
        wants_logprobs = request.get("logprobs") is not None and request.get("logprobs") is not False
        echoes = request.get("echo") is True  # the prompt may contain a stop string
        stop = () if echoes else read_stop(request.get("stop"))
        return Wishes(logprobs=("logprobs",) if wants_logprobs else None, stop=stop)

    def add_piece(self, record: ChoiceRecord, choice: JsonObject) -> None:
        """Take a text."""
        self.add_text(record, choice.get("text"))

    def find_wanted_number(self) -> int | None:
        """The number of choices for all prompts."""
        wanted, prompt = super().find_wanted_number(), self.request.get("prompt")
        if wanted is None or not isinstance(prompt, list) or not prompt or isinstance(prompt[0], int):
            return wanted
        return wanted * len(prompt)


class ResponsesCheck(ReplyCheck):
    """The check of Responses. The last event of a stream has the whole response."""

    def __init__(self, request: JsonObject, *, judges_schema: bool, has_wishes: bool) -> None:
        super().__init__(request, judges_schema=judges_schema, has_wishes=has_wishes)
        self._response: JsonObject = {}

    def read_wishes(self, request: JsonObject) -> Wishes:
        """Read them from the request."""
        tool, no_tool = _read_tool_choice(request.get("tool_choice"))
        text = request.get("text")
        form = text.get("format") if isinstance(text, dict) else None
        described = form if isinstance(form, dict) else {}
        include = request.get("include")
        wants_logprobs = isinstance(include, list) and "message.output_text.logprobs" in include
        return Wishes(
            logprobs=("include",) if wants_logprobs else None,
            tool=tool,
            no_tool=no_tool,
            one_call=request.get("parallel_tool_calls") is False,
            format=("text", "format") if described.get("type") in _JSON_FORMATS else None,
            schema=described.get("schema"),
        )

    def add_reply(self, reply: JsonObject) -> None:
        """Take a whole response."""
        self._response = reply

    def add_chunk(self, chunk: JsonObject) -> None:
        """Take the response of an event that has one."""
        if isinstance(response := chunk.get("response"), dict):
            self._response = response

    def add_run(self, run: DeltaRun) -> None:
        """Nothing: the last event repeats every text."""

    def find_mismatches(self) -> Iterable[Mismatch]:
        """Compare the response and its tokens."""
        response = self._response
        if response.get("status") == "failed":
            return
        if self.has_wishes:
            yield from self.compare_choice(self._record_output(response))
        usage = response.get("usage")
        used = usage.get("output_tokens") if isinstance(usage, dict) else None
        for name in TOKEN_LIMITS[HUB_RESPONSES]:
            yield from self.compare_tokens((name,), self.request.get(name), used, 1)

    def _record_output(self, response: JsonObject) -> ChoiceRecord:
        record = ChoiceRecord()
        details = response.get("incomplete_details")
        if response.get("status") == "incomplete":
            reason = details.get("reason") if isinstance(details, dict) else None
            record.finish = _CONTENT_FILTER if reason == _CONTENT_FILTER else "length"
        for item in list_objects(response.get("output")):
            built_in = BUILT_IN_CALLS.get(str(item.get("type")))
            if built_in is not None or item.get("type") in ("function_call", "custom_tool_call"):
                record.calls.append(str(item.get("name") if built_in is None else built_in.type))
            elif item.get("type") == "message":
                for part in list_objects(item.get("content")):
                    self._add_part(record, part)
        return record

    def _add_part(self, record: ChoiceRecord, part: JsonObject) -> None:
        record.is_refusal |= part.get("type") == "refusal"
        if part.get("type") == "output_text" and isinstance(text := part.get("text"), str) and text:
            record.has_text = True
            record.text.add(text)
            record.has_logprobs |= bool(part.get("logprobs"))


_JSON_FORMATS = ("json_object", "json_schema")

_CHECKS: Mapping[str, type[ReplyCheck]] = {
    "chat": ChatCheck,
    "completions": CompletionsCheck,
    "responses": ResponsesCheck,
    "messages": MessagesCheck,
}
_OF_TOTALS = frozenset({"n"}.union(*TOKEN_LIMITS.values()))
_OF_CHAT = frozenset({"logprobs", "tool_choice", "parallel_tool_calls", "response_format", "stop"})
CHECKED: Mapping[str, frozenset[str]] = {
    "chat": _OF_CHAT.union({"n"}, TOKEN_LIMITS[HUB_CHAT]),
    "completions": frozenset({"n", "logprobs", "stop", *TOKEN_LIMITS[HUB_COMPLETIONS]}),
    "responses": frozenset({"include", "tool_choice", "parallel_tool_calls", "text", *TOKEN_LIMITS[HUB_RESPONSES]}),
    "messages": frozenset(
        {"tool_choice", "output_config", "output_format", "stop_sequences", *TOKEN_LIMITS[HUB_MESSAGES]}
    ),
}
"""The parameters that a reply is held to."""


_LIMITS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "chat": (TOKEN_LIMITS[HUB_CHAT], "completion_tokens"),
    "completions": (TOKEN_LIMITS[HUB_COMPLETIONS], "completion_tokens"),
    "responses": (TOKEN_LIMITS[HUB_RESPONSES], "output_tokens"),
    "messages": (TOKEN_LIMITS[HUB_MESSAGES], "output_tokens"),
}
"""The limits on tokens of a request, and the tokens in the usage that they are about."""


def keeps_to_limit(protocol: str, request: JsonObject, usage: Any) -> bool:
    """Whether a request in hub form, in the client's protocol, asks for nothing that its reply is held to, or only
    limits the tokens, and the usage of the reply is within the limit. If so, no check would find a mismatch."""
    if protocol not in CHECKED:
        return True
    names = CHECKED[protocol] & request.keys()
    if len(names) != 1:
        return not names
    (name,) = names
    limits, counted = _LIMITS[protocol]
    if name not in limits or not isinstance(usage, dict):
        return False
    limit, used = request[name], usage.get(counted)
    return type(limit) is type(used) is int and used <= limit


def create_reply_check(protocol: str, request: JsonObject, replies: str) -> ReplyCheck | None:
    """The check of replies to a request in hub form, in the client's protocol; None if there is nothing to check.

    `replies` is the policy: under `off` nothing is checked, under `strict` JSON is judged by the client's schema too.
    """
    names = CHECKED.get(protocol, frozenset()) & request.keys()
    if replies == "off" or not names:
        return None
    return _CHECKS[protocol](request, judges_schema=replies == "strict", has_wishes=not names <= _OF_TOTALS)


def _read_index(choice: JsonObject) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _read_tool_choice(choice: Any) -> tuple[str | None, bool]:
    """The name of the tool that must be called (empty for any, None if none must be), and whether none may be."""
    if choice == "required":
        return "", False
    if not isinstance(choice, dict):
        return None, choice == "none"
    if choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools", choice)
        return ("" if isinstance(allowed, dict) and allowed.get("mode") == "required" else None), False
    return _read_name(choice), False


def _read_name(holder: JsonObject) -> str | None:
    """The name of a tool, in a call, a piece of one, or a choice; None if it has none."""
    for key in ("function", "custom"):
        if isinstance(inner := holder.get(key), dict):
            holder = inner
    name = holder.get("name")
    return name if isinstance(name, str) and name else None
