"""Objects as schemas ask for them, drawn from a seed, each with a question that may say what is in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from .corpus import Objects, Told
from .invention import Makers, Source
from .written import AnyValue

__all__ = ["Asked", "ObjectSource", "mention"]

Fields: TypeAlias = dict[str, Any]

KINDS = ("text",) * 9 + ("integer",) * 4 + ("number", "flag", "list", "list")
TEXTS = ("name",) * 7 + ("phrase",) * 4 + ("word",) * 4 + ("number", "date", "time", "email")
FLAGS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the object that answers it, and whether even its shape is the model's own."""

    question: str
    value: Fields
    own: bool = False


class ObjectSource(Source):
    def __init__(self, corpus: Objects, makers: Makers) -> None:
        super().__init__(*makers)
        self._corpus = corpus

    def listed(self) -> Asked:
        """A question that lists most of the fields by name. What it leaves out is unknown, zero, false or empty."""
        chance, corpus = self._chance, self._corpus
        own = chance.random() < 0.2
        kinds = {key: chance.choice(KINDS) for key in self._keys(chance.choice((1, 2, 2, 3, 3, 4, 5)))}
        said = {key: self._value(kind) for key, kind in kinds.items() if own or chance.random() < 0.8}
        if not said:
            said = {key: self._value(kind) for key, kind in kinds.items()}
        value = {key: said[key][1] if key in said else self._missing(kind) for key, kind in kinds.items()}
        question = chance.choice(corpus.asked_json if own else corpus.asked) + self._listing(said, shuffled=not own)
        return Asked(question, value if own else self._nested(value), own)

    def told(self, told: Told | None = None) -> Asked:
        """A sentence, and some of what it says, in any order."""
        chance = self._chance
        told = told or chance.choice(self._corpus.told)
        values = [self._typed(kind) for _, kind in told.fields]
        value = {chance.choice(keys): given[1] for (keys, _), given in zip(told.fields, values, strict=True)}
        text = told.text.format(*(text for text, _ in values))
        prefix = chance.choice(self._corpus.asked) if chance.random() < 0.5 else ""
        items = chance.sample(list(value.items()), chance.randint(1, len(value)))
        if chance.random() < 0.2:
            items.insert(chance.randint(0, len(items)), (self._keys(1)[0], self._missing(chance.choice(KINDS))))
        if chance.random() < 0.5:
            items = [(key, value[key]) for key in value]
        return Asked(prefix + text + ("." if chance.random() < 0.3 else ""), self._nested(dict(items)))

    def around(self, answer: str) -> Fields:
        """An object whose first text is the answer to a question; all else in it is unknown."""
        chance = self._chance
        keys = self._keys(chance.choice((1, 2, 2, 3, 3, 4, 5)))
        kinds = {key: chance.choice(KINDS) for key in keys}
        value = {key: self._missing(kind) for key, kind in kinds.items()}
        texts = [key for key, kind in kinds.items() if kind == "text"]
        if texts:
            value[texts[0]] = answer
        return self._nested(value)

    def _keys(self, count: int) -> list[str]:
        found: list[str] = []
        while len(found) < count:
            key = self._chance.choice(self._corpus.keys) if self._chance.random() < 0.7 else self._made_up()
            if key not in found and key not in self._corpus.held_out_keys:
                found.append(key)
        return found

    def _made_up(self) -> str:
        words = [self._copied(self._stranger.word) for _ in range(self._chance.choice((1, 1, 2)))]
        return "_".join(words)

    def _value(self, kind: str) -> tuple[str, Any]:
        """A value as a question says it, and as JSON has it."""
        return self._typed(self._chance.choice(TEXTS) if kind == "text" else kind)

    def _typed(self, kind: str) -> tuple[str, Any]:
        chance = self._chance
        if kind == "flag":
            said = chance.choice(list(FLAGS))
            return said, FLAGS[said]
        if kind == "list":
            items = [self._copied(self._inventor.word) for _ in range(chance.choice((1, 2, 2, 3)))]
            return chance.choice((", ", " and ", "/")).join(items), list(items)
        if kind == "integer":
            number = chance.randint(0, 10 ** chance.randint(1, 4))
            return str(number), number
        if kind == "number":
            amount = round(chance.uniform(0, 10 ** chance.randint(1, 3)), chance.choice((1, 2)))
            return str(amount), amount
        text = self._copied(lambda: self._inventor.of(kind))
        return text, text

    def _missing(self, kind: str) -> Any:
        chance = self._chance
        if kind == "flag":
            return False
        if kind == "list":
            return [] if chance.random() < 0.5 else [self._missing(chance.choice(("text", "integer")))]
        if chance.random() < 0.7:
            return self._corpus.unknown if kind == "text" else 0
        if kind == "text":
            return AnyValue(self._copied(self._stranger.phrase))
        return AnyValue(chance.randint(-99, 10 ** chance.randint(1, 4)))

    def _listing(self, said: dict[str, tuple[str, Any]], *, shuffled: bool) -> str:
        chance = self._chance
        style, joint = chance.choice(self._corpus.mentions), chance.choice(self._corpus.joints)
        if any(", " in text for text, _ in said.values()):
            joint = "; "
        spaced = chance.random() < 0.6
        items = list(said.items())
        if shuffled and chance.random() < 0.4:
            chance.shuffle(items)
        return joint.join(mention(style, key, text, spaced=spaced) for key, (text, _) in items)

    def _nested(self, value: Fields) -> Fields:
        """The same, with some neighbours in an object of their own now and then."""
        if len(value) < 2 or self._chance.random() < 0.75:
            return value
        first = self._chance.randrange(len(value))
        last = self._chance.randint(first + 1, len(value))
        items = list(value.items())
        outer = self._chance.choice([name for name in self._corpus.outer if name not in value])
        return dict([*items[:first], (outer, dict(items[first:last])), *items[last:]])


def mention(style: str, key: str, value: str, *, spaced: bool = True) -> str:
    """How a question names a key and its value."""
    return style.replace("{key}", key.replace("_", " ") if spaced else key).replace("{value}", value)
