"""What one choice of a reply is held to, for chat, completions, Responses and Messages.

A reply may be valid and still not be what was asked for: fewer choices, text instead of JSON, an answer where a tool
had to be called. Each protocol's check collects what it needs of a reply, whole or in pieces, as a `ChoiceRecord`; the
rules here compare it with the `Wishes` of the request:

    wish                  a mismatch if                                          no mismatch if it ended by
    --------------------  -----------------------------------------------------  ------------------------------------
    logprobs              the choice has text and no log probabilities           -
    a tool must be used   no call, or no call of the tool that was named         length, content filter, refusal
    no tool may be used   a call                                                 -
    one call at most      several calls                                          -
    JSON, a JSON Schema   the text is not JSON; under `strict`: not by schema    length, content filter, refusal, a call
    stop                  a stop string is in the text                           -

The number of choices and of tokens is compared for the reply as a whole. Nothing here raises for what a reply contains,
because under some policies it comes as the provider sent it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import Path
from dragoman.adapters.streams import Chunk, DeltaRun, Output
from dragoman.adapters.text_buffer import TextBuffer

from .schema_judge import find_violation

__all__ = ["ChoiceRecord", "Mismatch", "ReplyCheck", "Wishes", "list_objects", "read_stop"]

_CUT_SHORT = frozenset({"length", "content_filter"})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """`path` leads to the parameter of the request, in the client's protocol; `text` says what came instead, without
    the model's own words."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a request asks of each choice. `path`s lead to the parameters.

    `tool` is the name of the tool that must be called, empty for any, None if none must be. `schema` is the JSON Schema
    of the format, None if any JSON will do. `one_call_path` and `stop_path` lead to the protocol's parameters.
    """

    logprobs: Path | None = None
    tool: str | None = None
    no_tool: bool = False
    one_call: bool = False
    format: Path | None = None
    schema: Any = None
    stop: tuple[str, ...] = ()
    one_call_path: Path = ("parallel_tool_calls",)
    stop_path: Path = ("stop",)

    @property
    def need_text(self) -> bool:
        return self.format is not None or bool(self.stop)

    @property
    def need_runs(self) -> bool:
        """Whether coalesced texts matter: most requests only limit the tokens, and their streams stay cheap."""
        return self.need_text or self.logprobs is not None


_NO_WISHES = Wishes()


@dataclass(slots=True)
class ChoiceRecord:
    """What was seen of one choice. `calls` are the names of the tools that it calls; `finish` is in the hub's words."""

    text: TextBuffer = field(default_factory=TextBuffer)
    has_text: bool = False
    has_logprobs: bool = False
    is_refusal: bool = False
    calls: list[str] = field(default_factory=list)
    finish: str | None = None


class ReplyCheck(ABC):
    """Compares one reply with its request. Feed it what the client gets, then ask for the mismatches."""

    def __init__(self, request: JsonObject, *, judges_schema: bool, has_wishes: bool) -> None:
        """`judges_schema`: JSON is also judged by the client's schema. Unless it `has_wishes`, the request says nothing
        of single choices."""
        self.request = request
        self.judges_schema = judges_schema
        self.has_wishes = has_wishes
        self.wishes = self.read_wishes(request) if has_wishes else _NO_WISHES
        self.usage: JsonObject = {}

    @abstractmethod
    def read_wishes(self, request: JsonObject) -> Wishes:
        """What the request asks for."""

    @abstractmethod
    def add_reply(self, reply: JsonObject) -> None:
        """Take a whole reply."""

    @abstractmethod
    def add_chunk(self, chunk: JsonObject) -> None:
        """Take one chunk or event of a stream."""

    @abstractmethod
    def add_run(self, run: DeltaRun) -> None:
        """Take coalesced deltas of a stream."""

    @abstractmethod
    def find_mismatches(self) -> Iterable[Mismatch]:
        """Every wish that the reply does not meet."""

    def add_outputs(self, outputs: Iterable[Output]) -> None:
        """Take a part of a stream."""
        for output in outputs:
            if isinstance(output, DeltaRun):
                self.add_run(output)
            elif isinstance(output, Chunk):
                self.add_chunk(output.body)

    def compare_choice(self, choice: ChoiceRecord) -> Iterator[Mismatch]:
        """The mismatches of one choice."""
        wishes = self.wishes
        if wishes.logprobs is not None and choice.has_text and not choice.has_logprobs:
            yield Mismatch(wishes.logprobs, "the provider gave no log probabilities")
        if wishes.no_tool and choice.calls:
            yield Mismatch(("tool_choice",), "no tool was to be called, and the model calls one")
        if wishes.one_call and len(choice.calls) > 1:
            yield Mismatch(wishes.one_call_path, f"the model makes {len(choice.calls)} calls at once")
        if wishes.stop and any(stop in choice.text.text() for stop in wishes.stop):
            yield Mismatch(wishes.stop_path, "the text contains a stop string")
        if choice.finish in _CUT_SHORT or choice.is_refusal:
            return
        if wishes.tool is not None and wishes.tool not in (*choice.calls, "" if choice.calls else None):
            named = f"the tool {wishes.tool!r}" if wishes.tool else "a tool"
            yield Mismatch(("tool_choice",), f"{named} was to be called, and the model did not")
        if wishes.format is not None and not choice.calls and (problem := self._judge_text(choice)):
            yield Mismatch(wishes.format, problem)

    def compare_tokens(self, path: Path, limit: Any, used: Any, choices: int) -> Iterator[Mismatch]:
        """The mismatch if more output tokens were used than `limit` for each choice."""
        if isinstance(limit, int) and isinstance(used, int) and used > limit * max(choices, 1):
            yield Mismatch(path, f"the provider counts {used} tokens, more than were allowed")

    def _judge_text(self, choice: ChoiceRecord) -> str | None:
        text = choice.text.text()
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return "JSON was asked for, and the text is not JSON"
        if not self.judges_schema or self.wishes.schema is None:
            return None
        violation = find_violation(value, self.wishes.schema, len(text))
        return None if violation is None else f"the JSON does not fit the schema: {violation}"


def list_objects(value: Any) -> list[JsonObject]:
    """The objects in a list; none for any other value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def read_stop(stop: Any) -> tuple[str, ...]:
    """The stop strings of a request, given as one or as a list."""
    strings = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    return tuple(one for one in strings if isinstance(one, str) and one)
