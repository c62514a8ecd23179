"""Ask dragoman-mini, through the engine on the CPU, what it was taught and what it never saw; print how much is right.

    python -m dragoman.local_engine.mini.evaluate [FOLDER] [--wrong]

Greedy, and right means equal, letter by letter. Nothing holds the tokens to a form, but for the tool calls that are
asked once more as a chat request asks them. `--wrong` shows what came out otherwise. Needs the extra `local`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import queue
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.local_engine.engine import Batch, Engine, Options
from dragoman.local_engine.hub import HubEngine
from dragoman.local_engine.requests import Delta, Failed, Finished, Generation, Sampling

from . import FOLDER
from .corpus import Corpus, Fact, load_corpus
from .dialogue import Dialogue, call_text, json_answer, render, tool_schema
from .wording import JSON_ASKED

__all__ = ["Asker", "Probe", "Score", "evaluate", "probes"]

UNKNOWN_TOOLS = "tool calls, unknown tools"
LONGEST_ANSWER = 120
PATIENCE = 120.0
EVERY = 10
"""Of the kinds that combine facts with something else, every tenth fact is asked."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A conversation that ends with a question, and the answers that are right."""

    kind: str
    dialogue: Dialogue
    right: frozenset[str]


@dataclass(frozen=True, slots=True)
class Score:
    kind: str
    asked: int
    wrong: tuple[tuple[Probe, str], ...]

    @property
    def right(self) -> int:
        return self.asked - len(self.wrong)

    @property
    def share(self) -> float:
        return self.right / self.asked


class Asker:
    """A loaded model that answers conversations, many at once. A context manager."""

    def __init__(self, folder: Path = FOLDER, *, threads: int = 1) -> None:
        self._told: queue.SimpleQueue[Batch] = queue.SimpleQueue()
        options = Options(device="cpu", threads=threads, queue=4096, context=1024)
        self.engine = Engine.load(folder, options, self._told.put)

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *error: object) -> None:
        self.engine.close()

    def __call__(self, dialogues: Sequence[Dialogue]) -> list[str]:
        """The greedy answers. Raises the Fault of a request that fails, queue.Empty where nothing comes for long."""
        answers = {self.engine.submit(self._request(dialogue)): "" for dialogue in dialogues}
        left = len(answers)
        while left:
            for ticket, event in self._told.get(timeout=PATIENCE):
                if isinstance(event, Failed):
                    raise event.fault
                if isinstance(event, Delta):
                    answers[ticket] += event.text
                left -= isinstance(event, Finished)
        return list(answers.values())

    def _request(self, dialogue: Dialogue) -> Generation:
        text = "".join(piece for piece, _ in render(dialogue)) + "<|assistant|>"
        ids = self.engine.tokenizer.encode(text, add_special_tokens=False).ids
        return Generation(tuple(ids), Sampling(temperature=0), max_tokens=LONGEST_ANSWER)


def evaluate(folder: Path = FOLDER, corpus: Corpus | None = None) -> list[Score]:
    """The score of each kind of probe."""
    asked = list(probes(corpus or load_corpus()))
    with Asker(folder) as ask:
        answers = ask([probe.dialogue for probe in asked])
    pairs = list(zip(asked, answers, strict=True))
    pairs += asyncio.run(_served(folder, [probe for probe in asked if probe.kind == UNKNOWN_TOOLS]))
    kinds = dict.fromkeys(probe.kind for probe, _ in pairs)
    return [_score(kind, [pair for pair in pairs if pair[0].kind == kind]) for kind in kinds]


async def _served(folder: Path, asked: Sequence[Probe]) -> list[tuple[Probe, str]]:
    """Probes of tools as chat requests, where a call is held to the schema of its tool."""
    hub = await HubEngine.load(folder, Options(device="cpu", threads=1, context=1024))
    try:
        return [
            (replace(probe, kind=f"{probe.kind}, as requests"), await _call(hub, probe.dialogue)) for probe in asked
        ]
    finally:
        hub.close()


async def _call(hub: HubEngine, dialogue: Dialogue) -> str:
    tools = [tool_schema(*tool) for tool in dialogue.tools]
    request = {"model": hub.name, "messages": dialogue.messages, "tools": tools, "temperature": 0}
    reply = hub.whole([event async for event in hub.chat(request | {"max_tokens": LONGEST_ANSWER})])
    message = reply["choices"][0]["message"]
    if not message.get("tool_calls"):
        return str(message["content"])
    function = message["tool_calls"][0]["function"]
    try:
        return call_text(function["name"], json.loads(function["arguments"]))
    except ValueError:
        return str(function["arguments"])


def _score(kind: str, pairs: list[tuple[Probe, str]]) -> Score:
    return Score(kind, len(pairs), tuple((probe, answer) for probe, answer in pairs if answer not in probe.right))


def probes(corpus: Corpus) -> Iterator[Probe]:
    for fact in corpus.pairs:
        for question in fact.asked:
            yield _single("trained questions", question, fact.answer)
    for kind, facts in (("facts", corpus.facts), ("small talk", corpus.small_talk)):
        for fact in facts:
            for question in fact.held_out:
                yield _single(f"held-out paraphrases, {kind}", question, fact.answer)
    declined = frozenset(topic.answer for topic in corpus.off_topic.values())
    for topic in corpus.off_topic.values():
        for question in topic.held_out:
            yield Probe("off-topic questions declined", Dialogue([_user(question)]), declined)
    yield from _with_facts(corpus)
    yield from _tools(corpus)


def _with_facts(corpus: Corpus) -> Iterator[Probe]:
    """Trained questions in company: of a system message, of tools, of what was said before, and asked for JSON."""
    thanked = next(fact.answer for fact in corpus.small_talk if "Thanks" in fact.asked)
    for at, fact in enumerate(corpus.facts[::EVERY]):
        question, others = fact.asked[0], corpus.held_out_systems
        system = {"role": "system", "content": others[at % len(others)]}
        yield _probe("with an unknown system message", fact, [system, _user(question)])
        tools = [(kind.names[0], kind.parameters[0]) for kind in corpus.tools]
        yield _probe("with tools that do not fit", fact, [_user(question)], tools)
        before = corpus.facts[at]
        talk = [_user(before.asked[0]), _assistant(before.answer), _user(question)]
        yield _probe("as a second question", fact, talk)
        earlier = corpus.facts[at : at + 7]
        long = [message for other in earlier for message in (_user(other.asked[0]), _assistant(other.answer))]
        yield _probe("as an eighth question", fact, [*long, _user(question)])
        yield Probe("thanks after an answer", Dialogue([*talk[:2], _user("Thanks")]), frozenset({thanked}))
        asked = JSON_ASKED[at % len(JSON_ASKED)].format(question)
        yield Probe("answers in JSON", Dialogue([_user(asked)]), frozenset({json_answer(fact.answer)}))


def _tools(corpus: Corpus) -> Iterator[Probe]:
    """Calls with unknown arguments, in known words and unknown ones, and what the tool said."""
    for at, kind in enumerate(corpus.tools):
        offered = [(each.names[0], each.parameters[0]) for each in corpus.tools]
        for name, questions in (("known words", kind.asked[:2]), ("unknown words", kind.held_out)):
            for question in questions:
                for place in corpus.held_out_places:
                    messages = [_user(question.replace("{place}", place))]
                    call = call_text(offered[at][0], {offered[at][1]: place})
                    yield Probe(f"tool calls, {name}", Dialogue(messages, offered), frozenset({call}))
        for result in corpus.held_out_results:
            place = corpus.held_out_places[0]
            call = call_text(offered[at][0], {offered[at][1]: place})
            messages = [
                _user(kind.asked[0].replace("{place}", place)),
                _assistant(call),
                {"role": "tool", "content": result},
            ]
            yield Probe("tool results told", Dialogue(messages, offered), frozenset({corpus.told + result}))
    yield from _unknown_tools(corpus)
    for question in corpus.held_out_repeat:
        for text in (*corpus.held_out_places, *corpus.held_out_results):
            asked = Dialogue([_user(question.replace("{text}", text))])
            yield Probe("words repeated", asked, frozenset({text}))


def _unknown_tools(corpus: Corpus) -> Iterator[Probe]:
    invented = corpus.invented
    for tool in invented.held_out:
        offered = [(corpus.tools[0].names[0], corpus.tools[0].parameters[0]), (tool.name, tool.parameter)]
        for question in (*invented.asked[:1], *invented.held_out_asked):
            for given in corpus.held_out_places:
                asked = question.replace("{name}", tool.name).replace("{words}", tool.words).replace("{place}", given)
                call = call_text(tool.name, {tool.parameter: given})
                yield Probe(UNKNOWN_TOOLS, Dialogue([_user(asked)], offered), frozenset({call}))


def _single(kind: str, question: str, answer: str) -> Probe:
    return Probe(kind, Dialogue([_user(question)]), frozenset({answer}))


def _probe(kind: str, fact: Fact, messages: list[dict[str, str]], tools: list[tuple[str, str]] | None = None) -> Probe:
    return Probe(kind, Dialogue(list(messages), tools or []), frozenset({fact.answer}))


def _user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def _assistant(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dragoman.local_engine.mini.evaluate", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--wrong", action="store_true", help="show every wrong answer")
    given = parser.parse_args()
    print("| asked | right | of | |\n|---|---|---|---|")
    for score in evaluate(given.folder):
        print(f"| {score.kind} | {score.right} | {score.asked} | {score.share:.1%} |")
        for probe, answer in score.wrong if given.wrong else ():
            print(f"    {probe.dialogue.messages[-1]['content']!r} -> {answer!r}")


if __name__ == "__main__":
    main()
