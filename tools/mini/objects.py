"""Objects under JSON Schemas, drawn from a seed, each with a question that may name their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from .corpus import Objects, Statement
from .invention import Makers, Source
from .json_pieces import AnyValue

__all__ = ["ObjectSource", "ObjectTask", "write_mention"]

Fields: TypeAlias = dict[str, Any]

KINDS = ("text",) * 9 + ("integer",) * 4 + ("number", "flag", "list", "list")
TEXTS = ("name",) * 7 + ("phrase",) * 4 + ("word",) * 4 + ("number", "date", "time", "email")
FLAGS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class ObjectTask:
    """A question and the object that answers it. `own`: the model learns the shape too, not only the values."""

    question: str
    value: Fields
    own: bool = False


class ObjectSource(Source):
    def __init__(self, corpus: Objects, makers: Makers) -> None:
        super().__init__(*makers)
        self._corpus = corpus

    def draw_listing(self) -> ObjectTask:
        """Make a question that lists most fields by name. The other fields are unknown, zero, false or empty."""
        chance, corpus = self._chance, self._corpus
        own = chance.random() < 0.2
        kinds = {key: chance.choice(KINDS) for key in self._keys(chance.choice((1, 2, 2, 3, 3, 4, 5)))}
        said = {key: self._value(kind) for key, kind in kinds.items() if own or chance.random() < 0.8}
        if not said:
            said = {key: self._value(kind) for key, kind in kinds.items()}
        value = {key: said[key][1] if key in said else self._missing_value(kind) for key, kind in kinds.items()}
        question = chance.choice(corpus.json_prefixes if own else corpus.prefixes) + self._listing(
            said, shuffled=not own
        )
        return ObjectTask(question, value if own else self._nest(value), own)

    def draw_statement(self, statement: Statement | None = None) -> ObjectTask:
        """Make a sentence, and an object of some of its values, in any order."""
        chance = self._chance
        statement = statement or chance.choice(self._corpus.statements)
        values = [self._draw_value(kind) for _, kind in statement.fields]
        value = {chance.choice(keys): given[1] for (keys, _), given in zip(statement.fields, values, strict=True)}
        text = statement.text.format(*(text for text, _ in values))
        prefix = chance.choice(self._corpus.prefixes) if chance.random() < 0.5 else ""
        items = chance.sample(list(value.items()), chance.randint(1, len(value)))
        if chance.random() < 0.2:
            items.insert(chance.randint(0, len(items)), (self._keys(1)[0], self._missing_value(chance.choice(KINDS))))
        if chance.random() < 0.5:
            items = [(key, value[key]) for key in value]
        return ObjectTask(prefix + text + ("." if chance.random() < 0.3 else ""), self._nest(dict(items)))

    def wrap_answer(self, answer: str) -> Fields:
        """Make an object whose first text is the answer to a question; its other fields are unknown."""
        chance = self._chance
        keys = self._keys(chance.choice((1, 2, 2, 3, 3, 4, 5)))
        kinds = {key: chance.choice(KINDS) for key in keys}
        value = {key: self._missing_value(kind) for key, kind in kinds.items()}
        texts = [key for key, kind in kinds.items() if kind == "text"]
        if texts:
            value[texts[0]] = answer
        return self._nest(value)

    def _keys(self, count: int) -> list[str]:
        found: list[str] = []
        while len(found) < count:
            key = self._chance.choice(self._corpus.keys) if self._chance.random() < 0.7 else self._invent_key()
            if key not in found and key not in self._corpus.held_out_keys:
                found.append(key)
        return found

    def _invent_key(self) -> str:
        words = [self._make_allowed(self._stranger.word) for _ in range(self._chance.choice((1, 1, 2)))]
        return "_".join(words)

    def _value(self, kind: str) -> tuple[str, Any]:
        """A value as text in a question, and as JSON."""
        return self._draw_value(self._chance.choice(TEXTS) if kind == "text" else kind)

    def _draw_value(self, kind: str) -> tuple[str, Any]:
        chance = self._chance
        if kind == "flag":
            said = chance.choice(list(FLAGS))
            return said, FLAGS[said]
        if kind == "list":
            items = [self._make_allowed(self._inventor.word) for _ in range(chance.choice((1, 2, 2, 3)))]
            return chance.choice((", ", " and ", "/")).join(items), list(items)
        if kind == "integer":
            number = chance.randint(0, 10 ** chance.randint(1, 4))
            return str(number), number
        if kind == "number":
            amount = round(chance.uniform(0, 10 ** chance.randint(1, 3)), chance.choice((1, 2)))
            return str(amount), amount
        text = self._make_allowed(lambda: self._inventor.of(kind))
        return text, text

    def _missing_value(self, kind: str) -> Any:
        chance = self._chance
        if kind == "flag":
            return False
        if kind == "list":
            return [] if chance.random() < 0.5 else [self._missing_value(chance.choice(("text", "integer")))]
        if chance.random() < 0.7:
            return self._corpus.unknown if kind == "text" else 0
        if kind == "text":
            return AnyValue(self._make_allowed(self._stranger.phrase))
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
        return joint.join(write_mention(style, key, text, spaced=spaced) for key, (text, _) in items)

    def _nest(self, value: Fields) -> Fields:
        """Sometimes move neighboring fields into an object of their own."""
        if len(value) < 2 or self._chance.random() < 0.75:
            return value
        first = self._chance.randrange(len(value))
        last = self._chance.randint(first + 1, len(value))
        items = list(value.items())
        outer = self._chance.choice([name for name in self._corpus.outer if name not in value])
        return dict([*items[:first], (outer, dict(items[first:last])), *items[last:]])


def write_mention(style: str, key: str, value: str, *, spaced: bool = True) -> str:
    """Write a key and its value as a question names them."""
    return style.replace("{key}", key.replace("_", " ") if spaced else key).replace("{value}", value)
