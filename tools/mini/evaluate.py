"""Ask dragoman-mini trained and held-out questions through the engine on the CPU, and print the scores.

    python -m tools.mini.evaluate [FOLDER] [--wrong]

Decoding is greedy, and an answer is right if it equals the expected one letter by letter. Only chat requests constrain
the tokens, by the schemas of their tools or of the answer. `--wrong` prints the wrong answers. Needs the extra `local`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import queue
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.local_engine.engine import Engine, EngineOptions, EventBatch
from dragoman.local_engine.generation import Delta, Failed, Finished, GenerationRequest, SamplingParams
from dragoman.local_engine.mini import FOLDER
from dragoman.local_engine.service import EngineService

from .corpus import Corpus, load_corpus
from .dialogue import Dialogue, call_text, render, tool_schema
from .probes import Probe, plain_probes, request_probes

__all__ = ["ModelClient", "Score", "evaluate"]

LONGEST_ANSWER = 200
LONGEST_REPLY = 200
"""The most tokens of an answer, and of a reply to a request."""
PATIENCE = 120.0
WAITING = 8192


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


class ModelClient:
    """A context manager that loads a model and answers many conversations at once."""

    def __init__(self, folder: Path = FOLDER, *, threads: int = 1) -> None:
        self._events: queue.SimpleQueue[EventBatch] = queue.SimpleQueue()
        options = EngineOptions(device="cpu", threads=threads, queue=WAITING, context=1024)
        self.engine = Engine.load(folder, options, self._events.put)

    def __enter__(self) -> ModelClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.engine.close()

    def answer(self, dialogues: Sequence[Dialogue]) -> list[str]:
        """Return the greedy answers.

        Raises the Fault of a request that fails, and queue.Empty if the engine is silent for PATIENCE seconds.
        """
        answers = {self.engine.submit(self._request(dialogue)): "" for dialogue in dialogues}
        left = len(answers)
        while left:
            for ticket, event in self._events.get(timeout=PATIENCE):
                if isinstance(event, Failed):
                    raise event.fault
                if isinstance(event, Delta):
                    answers[ticket] += event.text
                left -= isinstance(event, Finished)
        return list(answers.values())

    def _request(self, dialogue: Dialogue) -> GenerationRequest:
        text = "".join(piece for piece, _ in render(dialogue)) + "<|assistant|>"
        ids = self.engine.tokenizer.encode(text, add_special_tokens=False).ids
        return GenerationRequest(tuple(ids), SamplingParams(temperature=0), max_tokens=LONGEST_ANSWER)


def evaluate(folder: Path = FOLDER, corpus: Corpus | None = None) -> list[Score]:
    """Ask all probes and return the score of each kind."""
    corpus = corpus or load_corpus()
    asked = list(plain_probes(corpus))
    with ModelClient(folder) as client:
        answers = client.answer([probe.dialogue for probe in asked])
    pairs = list(zip(asked, answers, strict=True))
    pairs += asyncio.run(_ask_hub(folder, list(request_probes(corpus))))
    kinds = dict.fromkeys(probe.kind for probe, _ in pairs)
    return [_score(kind, [pair for pair in pairs if pair[0].kind == kind]) for kind in kinds]


async def _ask_hub(folder: Path, asked: Sequence[Probe]) -> list[tuple[Probe, str]]:
    hub = await EngineService.load(folder, EngineOptions(device="cpu", threads=1, queue=WAITING, context=1024))
    try:
        replies = await asyncio.gather(*(_ask_once(hub, probe) for probe in asked))
        return list(zip(asked, replies, strict=True))
    finally:
        hub.close()


async def _ask_once(hub: EngineService, probe: Probe) -> str:
    """Send one request; return the text of the reply or its call as the model writes it, marked if it was cut."""
    tools = [tool_schema(*tool) for tool in probe.dialogue.tools]
    request: dict[str, Any] = {"model": hub.name, "messages": probe.dialogue.messages, "temperature": 0}
    request |= {"max_tokens": LONGEST_REPLY} | ({"tools": tools} if tools else {})
    if probe.schema is not None:
        wanted = {"name": "asked", "schema": probe.schema}
        request["response_format"] = {"type": "json_schema", "json_schema": wanted}
    [choice] = hub.collect_reply([event async for event in hub.chat(request)])["choices"]
    said = _message_text(choice["message"])
    return f"{said} (cut)" if choice["finish_reason"] == "length" else said


def _message_text(message: dict[str, Any]) -> str:
    if not message.get("tool_calls"):
        return str(message["content"])
    function = message["tool_calls"][0]["function"]
    try:
        return call_text(function["name"], json.loads(function["arguments"]))
    except ValueError:
        return str(function["arguments"])


def _score(kind: str, pairs: list[tuple[Probe, str]]) -> Score:
    return Score(kind, len(pairs), tuple((probe, answer) for probe, answer in pairs if not _is_right(probe, answer)))


def _is_right(probe: Probe, answer: str) -> bool:
    if probe.right:
        return answer in probe.right
    return _is_call(probe, answer) if probe.schema is None else _is_object(probe.schema, answer)


def _is_call(probe: Probe, answer: str) -> bool:
    """Whether it is a whole call of an offered tool, with all required parameters and no unknown one."""
    inner = answer.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
    try:
        call = json.loads(inner)
    except ValueError:
        return False
    if inner == answer:
        return False
    schemas = {name: tool_schema(name, listed)["function"]["parameters"] for name, listed in probe.dialogue.tools}
    wanted = schemas[call["name"]] | {"additionalProperties": False}
    return _is_object(wanted, json.dumps(call["arguments"]))


def _is_object(schema: dict[str, Any], answer: str) -> bool:
    from jsonschema import Draft202012Validator

    try:
        value = json.loads(answer)
    except ValueError:
        return False
    return bool(Draft202012Validator(schema).is_valid(value))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.mini.evaluate", description=__doc__)
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
