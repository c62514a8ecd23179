"""Keeping the chunks of one stream uniform: what chat and completions share.

One envelope in every chunk, usage in a chunk of its own and only if the client asked for it, a finish reason in a
chunk after the last text. What the choices hold, the protocol's ChoiceNormalizer knows. All methods alter the chunk in
place; those that return a bool return True if it was left as it came.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import Validator

from .choice_normalizer import ENVELOPE, ChoiceNormalizer
from .chunk_template import ChunkTemplate
from .completeness import ChoiceCompleteness
from .parameters import wants_usage
from .repair import REPAIRED, repair_event
from .reply_rules import ReplyRules
from .stream_changes import StreamChanges
from .usage import UsageTally

__all__ = ["ChunkNormalizer"]

_MOST_TEMPLATES = 8  # of a stream, made one after the other
_PLACE = ("choices",)


class ChunkNormalizer:
    """`template` is that of the chunk of text that came last. `choices_per_prompt` is how many choices a prompt has,
    if there may be several prompts."""

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
        self._changes = StreamChanges(ctx.receipt, _PLACE)
        self._choices = protocol(rules, ctx, self._changes)
        self._kind = protocol.chunk_object
        self._envelope: JsonObject = {}
        self._held: JsonObject = {}
        self._is_one_off = False  # the chunk that was normalized last holds more than the next of its kind
        self._usage = UsageTally(choices_per_prompt)
        self._wants_usage = wants_usage(ctx.request)
        self._templates_left = _MOST_TEMPLATES

    def normalize(self, body: JsonObject) -> bool:
        """Bring a chunk with choices into hub form. Raises Fault if a finish reason reports one, or if the chunk cannot
        be normalized."""
        same = self._set_envelope(body)
        for choice in _check_choices(body):
            if "index" not in choice:
                choice["index"], same = 0, False
            index = choice["index"]
            self._completeness.add_choice(index)
            same &= self._choices.normalize_piece(body, choice, index)
            if choice["finish_reason"] is not None:
                self._completeness.finish_choice(index)
        same &= self._take_usage(body)
        self._is_one_off = bool(self._held)
        if self._held:
            body.update({key: value for key, value in self._held.items() if key not in body})
            self._held, same = {}, False
        if self._hub.accepts(body):
            return same
        repair_event(body, self._hub)
        self._changes.record_conversion(_PLACE, REPAIRED)
        self._is_one_off = True
        return False

    def track_choices(self, body: JsonObject) -> bool:
        """Only follow which choices have finished, for policies that leave replies as they are. Raises Fault."""
        for choice in _check_choices(body):
            index = choice.get("index", 0)
            self._completeness.add_choice(index)
            if choice.get("finish_reason"):
                self._rules.finish_reason(body, choice, self._ctx)
                self._completeness.finish_choice(index)
        return True

    def learn_template(self, body: JsonObject, raw: bytes, same: bool) -> None:
        """Make a template of a chunk that was normalized from `raw` (`same`: without a change). Whatever normalized it,
        and made it valid, does the same for the next one that matches; most chunks of a stream do."""
        if not self._templates_left or self._is_one_off or len(body["choices"]) != 1:
            return
        if self._choices.is_only_text(body["choices"][0]):
            self.template = ChunkTemplate.learn(body, raw, same, self._choices.text)
            self._templates_left -= 1

    def split_ending(self, body: JsonObject) -> JsonObject | None:
        """The chunk that comes after the one normalized last, with the finish reasons that it should not hold; None
        if there are none."""
        endings = self._choices.split_endings(body)
        if not endings:
            return None
        usage = {"usage": None} if "usage" in body else {}
        return {**self._envelope, **usage, "choices": endings}

    def hold_event(self, body: JsonObject) -> None:
        """Take an event without choices: its usage is tallied, other keys are added to the next chunk."""
        self._usage.add(body.pop("usage", None), [])
        body.pop("choices", None)
        for key in ENVELOPE:
            body.pop(key, None)
        if body and not self._completeness.is_complete:
            self._held.update(body)
            self.template = None

    def make_usage_chunk(self) -> JsonObject | None:
        """The chunk with the usage that ends the stream, if the client asked for it and the provider reported it."""
        usage = self._usage.total()
        if usage is None or not self._wants_usage:
            return None
        return {**self._envelope, "choices": [], "usage": usage}

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
        body.update(envelope)
        self._changes.record_conversion(_PLACE, "id, created, object and model are the same in every chunk")
        return False

    def _take_usage(self, body: JsonObject) -> bool:
        usage: Any = body.get("usage")
        if usage is not None:
            self._usage.add(usage, body["choices"])
        if self._wants_usage:
            same = usage is None and "usage" in body
            body["usage"] = None
            return same
        return "usage" not in body or body.pop("usage", self) is self


def _check_choices(body: JsonObject) -> list[JsonObject]:
    """The choices, once it is sure that each has an index of its own. Raises Fault."""
    choices: list[JsonObject] = body["choices"]
    for choice in choices:
        if type(choice) is not dict or type(choice.get("index", 0)) is not int:
            message = f"the provider sent an event with a choice that is none: {str(choice)[:100]}"
            raise Fault("upstream_invalid_response", message, code="upstream_invalid_event")
    return choices
