"""Which fields an endpoint has: each is sent once in a good request, and the answer decides.

Fields whose acceptance is all that can be seen are asked for together first. If the endpoint refuses that request, the
field that the error names is asked for alone, and the others again; if it names none, each half is asked for. A refusal
counts only if the same request without the field is accepted, and is refused again. Texts of the model decide nothing:
a field is ignored only if what came back cannot be an answer to it (`shows`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_path import find_value
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.outcome import Outcome
from dragoman.contract.placeholders import MissingValueError, fill_placeholders
from dragoman.schemas import load

from .asking import Asker
from .findings import UNKNOWN_FIELD, Findings
from .probe_answer import Answer
from .probes import FieldProbe, ProtocolProbe

__all__ = ["FieldLearner"]

Shown: TypeAlias = Literal["accepted", "unclear", "wrong", "ignored"]
"""What an answer shows of a field: it was honored, that cannot be seen, it does something else, or nothing."""
_ORDER: tuple[Shown, ...] = ("accepted", "unclear", "wrong", "ignored")
"""Of several ways to use a field, the first of these counts."""
_LIMITED = 3
"""The limit on tokens that probes with `shows: limited` send."""


@dataclass
class FieldLearner:
    """Learns the fields of one protocol. `usual` is the accepted answer to the request without them."""

    asker: Asker
    findings: Findings
    probe: ProtocolProbe
    usual: Answer

    def __post_init__(self) -> None:
        dialect, profile = self.findings.dialect, self.asker.target.schema_profile
        known = load(f"{dialect}/{self.probe.name}.request", profile)["properties"]
        self._known = {name for name, rule in known.items() if "x-extra-parameter" not in rule}
        rule = load_dialect(dialect).extras
        self._refuses_unknown = False
        self._headers = {"extra-parameters": "pass-through"} if rule.rule == "by header" else {}

    async def learn(self, probes: Sequence[FieldProbe]) -> None:
        """Learn all these fields."""
        plain = [one for one in probes if one.is_plain]
        await self._learn_together([one for one in plain if one.field in self._known])
        await self._learn_extras([one for one in plain if one.field not in self._known])
        for one in probes:
            if not one.is_plain and one.field in self._known:
                await self._learn_alone(one)
        for one in probes:
            if not one.is_plain and one.field not in self._known and self._refuses_unknown:
                await self._learn_alone(one)

    def _name(self, field: str) -> str:
        return f"fields.{self.probe.name}.{field}"

    async def _ask(self, change: JsonObject, *, exactly: bool = False) -> Answer:
        unknown = change.keys() - self._known
        return await self.asker.ask(self.probe, change, headers=self._headers if unknown else None, exactly=exactly)

    async def _learn_together(self, probes: Sequence[FieldProbe]) -> None:
        if not probes:
            return
        answer = await self._ask({key: value for one in probes for key, value in one.send[0].items()})
        if answer.is_accepted:
            for one in probes:
                self.findings.learn(self._name(one.field), "accepted", answer.describe("accepted"))
        elif len(probes) == 1:
            await self._decide_refusal(probes[0], [answer])
        elif answer.state == "unclear":
            for one in probes:
                self.findings.give_up(self._name(one.field), answer.why)
        else:
            await self._learn_parts(probes, answer)

    async def _learn_parts(self, probes: Sequence[FieldProbe], answer: Answer) -> None:
        named = [one for one in probes if re.search(rf"\b{re.escape(one.field)}\b", answer.message)]
        if 0 < len(named) < len(probes):
            for one in named:
                await self._learn_together([one])
            await self._learn_together([one for one in probes if one not in named])
            return
        half = len(probes) // 2
        await self._learn_together(probes[:half])
        await self._learn_together(probes[half:])

    async def _decide_refusal(self, probe: FieldProbe, answers: Sequence[Answer]) -> None:
        """Decide about a field of which every way to use it was rejected: ask the first one again, unless the endpoint
        refuses all that is unknown, and the API lacks the field."""
        name, first = self._name(probe.field), answers[0]
        expected = probe.field not in self._known and self._refuses_unknown
        again = first if expected else await self._ask(self._fill(probe.send[0]), exactly=bool(probe.shows))
        if not (first.is_rejected and again.is_rejected):
            self.findings.give_up(name, again.why or first.why or "it was rejected once, and accepted then")
            return
        self.findings.learn(name, "refused" if first.state == "refused" else "crashes", first.describe())

    async def _learn_extras(self, probes: Sequence[FieldProbe]) -> None:
        """Learn fields that the dialect's API lacks: their acceptance means something only if the endpoint refuses a
        field that no API has."""
        control = await self._ask({UNKNOWN_FIELD: 1})
        self._refuses_unknown = control.is_rejected
        if control.is_accepted or control.is_rejected:
            state = "accepted" if control.is_accepted else "refused"
            self.findings.learn(self._name(UNKNOWN_FIELD), state, control.describe(state * control.is_accepted))
        await self._learn_together(probes)
        if not control.is_rejected:
            why = control.why or "the endpoint accepts any unknown field, so acceptance shows nothing"
            for one in probes:
                self._doubt(self._name(one.field), why)

    def _doubt(self, name: str, why: str) -> None:
        """Forget that a field was accepted."""
        if self.findings.get(name) == "accepted":
            del self.findings.facts[name]
            self.findings.give_up(name, why)

    async def _learn_alone(self, probe: FieldProbe) -> None:
        """Learn a field that needs requests of its own."""
        name = self._name(probe.field)
        if probe.needs and self.findings.get(self._name(probe.needs)) != "accepted":
            self.findings.give_up(name, f"it means something only with {probe.needs}, which is not accepted")
            return
        try:
            changes = [self._fill(change) for change in probe.send]
        except MissingValueError:
            self.findings.give_up(name, "the model's usual answer has no text to test it with")
            return
        answers = [await self._ask(change, exactly=bool(probe.shows)) for change in changes]
        accepted = [answer for answer in answers if answer.is_accepted]
        if not accepted:
            await self._decide_refusal(probe, answers)
            return
        self._note_values(probe, answers)
        self._judge_answers(probe, accepted)

    def _fill(self, change: JsonObject) -> JsonObject:
        """Raises MissingValueError."""
        found: JsonObject = fill_placeholders(change, self._values())
        return found

    def _values(self) -> Mapping[str, JsonValue]:
        texts = self.usual.outcome.content.texts if self.usual.outcome is not None else []
        letter = _find_letter(texts[0]) if texts else ""
        return {"letter": letter} if letter else {}

    def _note_values(self, probe: FieldProbe, answers: Sequence[Answer]) -> None:
        """Note the ways to use a field that are rejected, although the endpoint has the field."""
        for number, answer in enumerate(answers):
            if len(answers) > 1 and answer.is_rejected:
                self.findings.learn(f"values.{self.probe.name}.{probe.field}.{number}", answer.state, answer.describe())

    def _judge_answers(self, probe: FieldProbe, accepted: Sequence[Answer]) -> None:
        """Judge a field by the answers to the ways to use it that were accepted: it is ignored if none honors it."""
        name, check, usual = self._name(probe.field), _SHOWN.get(probe.shows), self.usual.outcome
        if check is None or usual is None:
            self.findings.learn(name, "accepted", accepted[0].describe("accepted"))
            return
        judged = [(answer, *check(answer, usual)) for answer in accepted]
        answer, state, seen = min(judged, key=lambda one: _ORDER.index(one[1]))
        if state == "unclear":
            self.findings.give_up(name, seen)
        else:
            self.findings.learn(name, state, answer.describe(seen))


def _decide(is_honored: bool) -> Shown:
    return "accepted" if is_honored else "ignored"


def _find_letter(text: str) -> str:
    """The most frequent letter of a text, empty if none occurs twice."""
    counts = Counter(letter for letter in text if "a" <= letter <= "z")
    letter, count = max(counts.items(), key=lambda one: one[1], default=("", 0))
    return letter if count > 1 else ""


def _shows_two_choices(answer: Answer, _usual: Outcome) -> tuple[Shown, str]:
    assert answer.outcome is not None
    count = len(answer.outcome.content.choices)
    return _decide(count >= 2), f"{count} choice{'s' * (count != 1)} for n: 2"


def _shows_logprobs(answer: Answer, _usual: Outcome) -> tuple[Shown, str]:
    assert answer.outcome is not None
    if not any(answer.outcome.content.texts):
        return "unclear", "the model wrote no text"
    found = any(choice.logprobs for choice in answer.outcome.content.choices.values())
    return _decide(found), "log probabilities" if found else "no log probabilities"


def _shows_stop(answer: Answer, _usual: Outcome) -> tuple[Shown, str]:
    """Whether the text ends before the stop sequence."""
    assert answer.outcome is not None
    request, texts = answer.outcome.request, answer.outcome.content.texts
    sequences = request.get("stop") or request.get("stop_sequences") or [""]
    sequence, text = str(sequences[0]), (texts or [""])[0]
    if sequence not in text:
        return "accepted", f"no {sequence!r} in the text"
    if text.partition(sequence)[2].strip():
        return "ignored", f"the text goes on after {sequence!r}"
    return "wrong", f"the text ends with {sequence!r}, not before it"


def _shows_limit(answer: Answer, usual: Outcome) -> tuple[Shown, str]:
    """Whether the usage says that the limit was kept, if the usual answer is longer."""
    assert answer.outcome is not None
    wrote, longer = _count_written(answer.outcome), _count_written(usual)
    if wrote is None or longer is None:
        return "unclear", "the replies have no count of tokens"
    if longer <= _LIMITED:
        return "unclear", f"the usual answer has only {longer} tokens"
    return _decide(wrote <= _LIMITED), f"{wrote} tokens for a limit of {_LIMITED}"


def _count_written(outcome: Outcome) -> int | None:
    usage = outcome.content.usages[-1] if outcome.content.usages else {}
    found = (usage.get(name) for name in ("completion_tokens", "output_tokens"))
    return next((count for count in found if isinstance(count, int)), None)


def _shows_four_numbers(answer: Answer, _usual: Outcome) -> tuple[Shown, str]:
    assert answer.outcome is not None
    vector = find_value(answer.outcome.body, "data[0].embedding")
    if not isinstance(vector, list):
        return "unclear", "the vector is no list of numbers"
    return _decide(len(vector) == 4), f"{len(vector)} numbers for dimensions: 4"


_SHOWN: Mapping[str, Callable[[Answer, Outcome], tuple[Shown, str]]] = {
    "limited": _shows_limit,
    "two_choices": _shows_two_choices,
    "stopped": _shows_stop,
    "logprobs": _shows_logprobs,
    "four_numbers": _shows_four_numbers,
}
"""What an answer shows of a field, and what was seen."""
