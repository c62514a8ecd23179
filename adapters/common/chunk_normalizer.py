"""Brings the chunks of one stream, of chat or completions, into hub form.

Every chunk gets the same envelope. Usage gets a chunk of its own, and only if the client asked for it. A finish reason
gets a chunk after the last text. The protocol's ChoiceNormalizer normalizes the choices. All methods alter the chunk in
place; those that return a bool return True if nothing changed.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.validation import Validator

from .choice_normalizer import ENVELOPE, ChoiceNormalizer
from .chunk_template import ChunkTemplate
from .completeness import ChoiceCompleteness
from .ending_buffer import EndingBuffer
from .finish_words import has_finished
from .parameters import wants_usage
from .repair import REPAIRED, repair_event
from .reply_rules import ReplyRules
from .stream_changes import StreamChanges
from .usage import NO_COUNTS, UNASKED_USAGE, UsageTally

__all__ = ["ChunkNormalizer"]

_MOST_TEMPLATES = 8  # per stream
_PLACE = ("choices",)
_SAME = {key: f"every chunk gets the same {key}" for key in ENVELOPE}
_REPEATED = ("service_tier", "system_fingerprint", "obfuscation")
"""What the chunk with the usage repeats of those before it."""
_INDEX_TYPES = (int, type(None))  # GitHub Copilot's proxy writes null


class ChunkNormalizer:
    """The normalizer of one stream.

    `template` is the template of the last chunk of text, if there is one. `endings` holds finish reasons back.
    `choices_per_prompt` is the number of choices per prompt, if the request may have several prompts.
    """

    def __init__(
        self,
        protocol: type[ChoiceNormalizer],
        rules: ReplyRules,
        ctx: Context,
        completeness: ChoiceCompleteness,
        hub: Validator,
        choices_per_prompt: int | None = None,
    ) -> None:
        self.template: ChunkTemplate | None = None
        self._rules = rules
        self._ctx = ctx
        self._completeness = completeness
        self._hub = hub
        self._changes = StreamChanges(ctx.receipt)
        self._choices = protocol(rules, ctx, self._changes)
        self.endings = EndingBuffer(self._choices, self._changes)
        self._kind = protocol.chunk_object
        self._envelope: JsonObject = {}
        self._held: JsonObject = {}
        self._is_one_off = False  # the last chunk holds keys that later ones will not have
        self._usage = UsageTally(choices_per_prompt)
        self._wants_usage = wants_usage(ctx.request)
        self._is_for_dragoman = not self._wants_usage and ctx.target.policy.stream_usage == "ask"
        self._templates_left = _MOST_TEMPLATES

    def take_failure(self, body: JsonObject) -> Fault | None:
        """Remove the failures that choices of a chunk report, so that what else they hold can be sent before the fault.

        Returns the fault of the first one, None if there is none. Raises Fault if a choice is invalid.
        """
        failures = []
        if body.get("error"):
            failures.append(read_error_object(body, 200, self._rules.words, self._ctx.clock()))
            del body["error"]
        for choice in _check_choices(body):
            failure = self._rules.find_failure(body, choice, self._ctx)
            if failure is not None:
                failures.append(failure)
                choice["finish_reason"] = None
                choice.pop("error", None)
        return failures[0] if failures else None

    def normalize(self, body: JsonObject) -> bool:
        """Bring a chunk with choices into hub form.

        Raises Fault if a finish reason reports a failure, or if the chunk cannot be normalized.
        """
        same = self._set_envelope(body)
        self._count_text()
        for choice in body["choices"]:
            if choice.get("index") is None:
                choice["index"], same = 0, False
                self._changes.record_fill(("choices", 0, "index"), "the provider gave none")
            index = choice["index"]
            self._completeness.add_choice(index)
            same &= self._choices.normalize_piece(body, choice, index)
            if choice["finish_reason"] is not None:
                self._completeness.finish_choice(index)
        same &= self._take_usage(body)
        self._is_one_off = bool(self._held)
        if self._held:
            for key in body.keys() & self._held.keys():
                self._record_replaced(key, body[key])
            body.update({key: value for key, value in self._held.items() if key not in body})
            self._held, same = {}, False
        if self._hub.accepts(body):
            return same
        repair_event(body, self._hub)
        self._changes.record_conversion(_PLACE, REPAIRED)
        self._is_one_off = True
        return False

    def track_choices(self, body: JsonObject) -> bool:
        """Record which choices have begun and finished, for policies that leave chunks unchanged.

        Raises Fault if a finish reason reports a failure.
        """
        for choice in body["choices"]:
            index = choice.get("index") or 0
            self._completeness.add_choice(index)
            if has_finished(choice.get("finish_reason")):
                if self._rules.finish_reason(body, choice, self._ctx) is None:
                    self._ctx.receipt.violations += 1
                self._completeness.finish_choice(index)
        return True

    def learn_template(self, body: JsonObject, raw: bytes, same: bool) -> None:
        """Make a template of a chunk that was normalized from `raw`; `same`: nothing changed.

        A later chunk that matches the template would be normalized in the same way, and would be valid too.
        """
        if not self._templates_left or self._is_one_off or len(body["choices"]) != 1:
            return
        path = self._choices.find_text(body["choices"][0])
        if path is not None:
            self.template = ChunkTemplate.learn(body, raw, same, ("choices", 0, *path))
            self._templates_left -= 1

    def hold_event(self, body: JsonObject) -> None:
        """Keep an event without choices, or a chunk that has lost all of them: its usage for the end of the stream,
        other keys for the next chunk.

        After the last choice has finished, the next chunk is the one with the usage.
        """
        usage = body.pop("usage", None)
        self._add_usage(usage, [])
        body.pop("choices", None)
        if usage is not None and self._is_for_dragoman:
            for key in (*_SAME, *_REPEATED):
                body.pop(key, None)
        for key, reason in _SAME.items():
            if (value := body.pop(key, None)) and value != self._envelope.get(key, self._kind):
                self._changes.record_conversion((key,), reason)
        if body:
            for key, value in body.items():
                self._record_replaced(key, value)
            self._held.update(body)
            self._count_text()
            self.template = None

    @property
    def usage(self) -> JsonObject | None:
        """The usage so far, in hub form."""
        return self._usage.total()

    def make_usage_chunk(self) -> JsonObject | None:
        """Make the last chunk, with the usage; None if the client did not ask for it or the provider reported none."""
        usage = self._usage.total()
        if usage is not None and self._wants_usage:
            if self._usage.is_combined:
                reason = "counts get the hub's names; the last ones of each choice count, and all choices are added"
                self._ctx.receipt.record_conversion(("usage",), reason)
            return {**self._held, **self._envelope, "choices": [], "usage": usage}
        if usage is not None and not self._is_for_dragoman:
            self._ctx.receipt.record_drop(("usage",), UNASKED_USAGE, "form")
        for key in self._held:
            self._ctx.receipt.record_drop((key,), "it came after the last chunk that the client gets")
        return None

    def _record_replaced(self, key: str, value: Any) -> None:
        """Record that another value replaces the held one of a key."""
        if self._held.get(key, value) != value:
            self._ctx.receipt.record_drop((key,), "the next chunk has another value")

    def _count_text(self) -> None:
        if self.template is not None:
            self._choices.count_text(*self.template.take_count())

    def _set_envelope(self, body: JsonObject) -> bool:
        envelope = self._envelope
        if not envelope:
            envelope = self._envelope = self._choices.make_envelope(body, self._kind)
        if (
            body.get("id") == envelope["id"]
            and body.get("created") == envelope["created"]
            and body.get("object") == self._kind
            and body.get("model") == envelope["model"]
        ):
            return True
        for key, reason in _SAME.items():
            if body.get(key) != envelope[key]:
                self._changes.record_conversion((key,), reason)
        body.update(envelope)
        return False

    def _take_usage(self, body: JsonObject) -> bool:
        usage: Any = body.get("usage") or self._find_vendor_usage(body)
        self._add_usage(usage, body["choices"])
        if self._wants_usage:
            same = usage is None and "usage" in body
            body["usage"] = None
            return same
        return "usage" not in body or body.pop("usage", self) is self

    def _find_vendor_usage(self, body: JsonObject) -> JsonObject | None:
        """The usage that Groq puts into `x_groq` of a stream's last chunk."""
        own = body.get("x_groq")
        usage = own.get("usage") if isinstance(own, dict) else None
        if usage and self._wants_usage:
            self._changes.record_conversion(("x_groq", "usage"), "the usage also comes in a chunk of its own")
        return usage or None

    def _add_usage(self, usage: Any, choices: list[JsonObject]) -> None:
        if usage is not None and not self._usage.add(usage, choices):
            self._ctx.receipt.record_drop(("usage",), NO_COUNTS)


def _check_choices(body: JsonObject) -> list[JsonObject]:
    """The choices. Raises Fault unless each is an object whose index, if it has one, is an integer."""
    choices: list[JsonObject] = body["choices"]
    for choice in choices:
        if type(choice) is not dict or type(choice.get("index", 0)) not in _INDEX_TYPES:
            message = f"the provider sent an event with an invalid choice: {str(choice)[:100]}"
            raise Fault("upstream_invalid_response", message, code="upstream_invalid_event")
    return choices
