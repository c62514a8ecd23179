"""Tools that a conversation offers, drawn from a seed: known or invented, with one parameter or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .corpus import Corpus, Several, ToolKind
from .invention import Makers, Source
from .objects import write_mention
from .wording import Wording

__all__ = ["Offer", "OfferSource", "signature"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool and its questions, which hold `{0}`, `{1}`, ... for the first parameters; `kinds` are their kinds."""

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    questions: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def parameter_list(self) -> str:
        return signature(self.required, self.optional)


def signature(required: tuple[str, ...], optional: tuple[str, ...] = ()) -> str:
    """Parameters as the chat template lists them: `city, unit?`. A question mark means optional."""
    return ", ".join((*required, *(f"{name}?" for name in optional)))


class OfferSource(Source):
    def __init__(self, corpus: Corpus, makers: Makers) -> None:
        super().__init__(*makers)
        self._corpus = corpus
        self._wording = Wording(self._chance, corpus.variations)
        several = {word for tool in corpus.held_out_several for word in tool}
        self._held_out = several | {word for tool in corpus.invented.held_out for word in (tool.name, tool.parameter)}

    def draw(self) -> list[Offer]:
        """Make one to three tools, known or invented, in any order."""
        chance, corpus = self._chance, self._corpus
        known: list[ToolKind | Several] = [*corpus.tools, *chance.sample(corpus.several, 3)]
        offers: dict[str, Offer] = {}
        for kind in chance.sample(known, chance.choice((0, 0, 1, 1, 2, 3))):
            offer = self._single(kind) if isinstance(kind, ToolKind) else self._several(kind)
            offers.setdefault(offer.name, offer)
        while not offers or (len(offers) < 3 and chance.random() < 0.45):
            offer = self._invented() if chance.random() < 0.5 else self._invented_several()
            offers.setdefault(offer.name, offer)
        found = list(offers.values())
        chance.shuffle(found)
        return found

    def ask(self, offer: Offer) -> tuple[str, dict[str, Any]]:
        """Make a question and the arguments of the call: the required ones, and others that the question names."""
        chance = self._chance
        names = (*offer.required, *offer.optional)
        values = [self._value(kind) for kind in offer.kinds]
        given: dict[str, Any] = {
            name: self._argument(kind, value) for name, kind, value in zip(names, offer.kinds, values, strict=False)
        }
        question = self._wording.change_case(chance.choice(offer.questions)).format(*values)
        for name in names[len(values) :]:
            if chance.random() < (0.85 if name in offer.required else 0.2):
                value = self._value("any")
                given[name] = self._argument("any", value)
                question = question.rstrip("?.!") + write_mention(chance.choice(self._corpus.extras), name, value)
            elif name in offer.required:
                given[name] = self._corpus.objects.unknown
        return self._wording.add_politeness(question) if chance.random() < 0.15 else question, given

    def _single(self, kind: ToolKind) -> Offer:
        chance = self._chance
        questions = tuple(question.replace("{place}", "{0}") for question in kind.questions)
        return self._offer(chance.choice(kind.names), (chance.choice(kind.parameters),), questions, ("place",))

    def _several(self, kind: Several) -> Offer:
        names = tuple(self._chance.choice(each) for each in kind.parameters)
        return self._offer(self._chance.choice(kind.names), names, kind.questions, kind.kinds)

    def _offer(self, name: str, names: tuple[str, ...], questions: tuple[str, ...], kinds: tuple[str, ...]) -> Offer:
        """Make an offer, sometimes with further parameters; which parameters are required varies."""
        chance = self._chance
        rest = [other for other in self._corpus.other_parameters if other not in names]
        others = tuple(chance.sample(rest, chance.choice((0, 0, 0, 1, 2))))
        draw = chance.random()
        if draw < 0.65:
            return Offer(name, names, others, questions, kinds)
        if draw < 0.85:
            return Offer(name, (*names, *others), (), questions, kinds)
        needed = chance.randrange(len(names))
        return Offer(name, names[:needed], (*names[needed:], *others), questions, kinds)

    def _invented(self) -> Offer:
        words, name = self._name()
        questions = tuple(
            text.replace("{name}", name).replace("{words}", words).replace("{place}", "{0}")
            for text in self._corpus.invented.questions
        )
        return self._offer(name, (self._parameter(),), questions, ("place",))

    def _invented_several(self) -> Offer:
        """Make a tool whose question names its parameters."""
        chance, (words, name) = self._chance, self._name()
        names = tuple(dict.fromkeys(self._parameter() for _ in range(chance.choice((2, 2, 3)))))
        prefix = chance.choice(self._corpus.several_prefixes).replace("{name}", name).replace("{words}", words)
        style, joint = chance.choice(self._corpus.objects.mentions), chance.choice((", ", " and ", "; ", ", "))
        listed = joint.join(
            write_mention(style, parameter, f"{{{place}}}", spaced=chance.random() < 0.3)
            for place, parameter in enumerate(names)
        )
        return self._offer(name, names, (prefix + listed,), ("any",) * len(names))

    def _name(self) -> tuple[str, str]:
        """The words of a tool's name, and the name."""
        invented, chance = self._corpus.invented, self._chance
        while True:
            words = [
                chance.choice(invented.nouns) if chance.random() < 0.6 else self._make_allowed(self._stranger.word)
                for _ in range(chance.randint(1, 2))
            ]
            name = "_".join((chance.choice(invented.verbs), *words))
            if name not in self._held_out:
                return " ".join(words), name

    def _parameter(self) -> str:
        """Draw a parameter: a listed one, a key of objects, or one or two invented words for the model to copy."""
        chance, corpus = self._chance, self._corpus
        while True:
            draw = chance.random()
            if draw < 0.3:
                name = chance.choice(corpus.invented.parameters)
            elif draw < 0.5:
                name = chance.choice(corpus.objects.keys)
            else:
                parts = [chance.choice(corpus.invented.nouns), self._make_allowed(self._stranger.word), "id", "name"]
                name = "_".join(chance.sample(parts, chance.choice((1, 2))))
            if name not in self._held_out and name not in corpus.objects.held_out_keys:
                return name

    def _value(self, kind: str) -> str:
        chance = self._chance
        if kind == "place":
            return self._place()
        if kind == "any":
            kind = chance.choice(("name", "name", "phrase", "word", "word", "number", "number", "date"))
        return self._make_allowed(lambda: self._inventor.of(kind))

    def _place(self) -> str:
        """Draw a known place or invent one, so that the model learns to copy instead of a list."""
        if self._chance.random() < 0.25:
            return self._chance.choice(self._corpus.places)
        return self._make_allowed(self._inventor.name if self._chance.random() < 0.7 else self._inventor.phrase)

    def _argument(self, kind: str, value: str) -> Any:
        """Convert half of the numbers to JSON numbers: in a request the tool's schema decides which it is."""
        if kind in ("number", "any") and value.replace(".", "", 1).isascii() and value.replace(".", "", 1).isdigit():
            return (float(value) if "." in value else int(value)) if self._chance.random() < 0.5 else value
        return value
