"""The comparison: every question direct, and through dragoman under each policy for replies."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import openai
import pydantic
from openai import AsyncOpenAI

from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start

from .catalog import Server
from .processes import RunningServer
from .questions import QUESTIONS, Facts, Question, WrongAnswer
from .sdk import create_client

__all__ = ["POLICIES", "Comparison", "Outcome", "Verdict", "can_serve", "compare", "judge"]

POLICIES = ("off", "report", "repair", "strict")
_BY_PROTOCOL = ("chat", "completions", "embeddings")

State: TypeAlias = Literal["right", "wrong", "refused", "broken"]
Verdict: TypeAlias = Literal["same", "repaired", "recorded", "wrong", "as direct", "refused", "BREAKS", "DIFFERS"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the SDK got. right: what was asked for; wrong: an answer that is not; refused: an error with a status;
    broken: the SDK or the connection failed."""

    state: State
    text: str = ""
    """Why it is not right; for an error its status, code and message."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    losses: tuple[str, ...] = ()
    """What dragoman recorded as lost."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One question's outcomes: direct, and through dragoman by policy."""

    question: str
    direct: Outcome
    through: Mapping[str, Outcome]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


async def compare(running: RunningServer) -> list[Comparison]:
    """Ask all questions that the server, or dragoman over it, can serve. Raises StartError if dragoman cannot start."""
    log = io.BytesIO()
    proxy = await start(configure(running), log_stream=log)
    direct = create_client(running.base_url, running.server.api_key)
    through = create_client(f"{proxy.url}/v1", "none")
    try:
        asked = [one for one in QUESTIONS if can_serve(running.server, one.protocol)]
        return [await _ask_everywhere(one, running, direct, through, log) for one in asked]
    finally:
        await direct.close()
        await through.close()
        await _stop(proxy)


def can_serve(server: Server, protocol: str) -> bool:
    """Whether a server, or dragoman over it, serves a protocol: dragoman needs chat to serve Responses."""
    return protocol in server.models or (protocol == "responses" and "chat" in server.models)


def configure(running: RunningServer) -> Config:
    """Configure dragoman with one model for each protocol and policy, such as `chat-repair`."""
    server = running.server
    models = {
        f"{protocol}-{policy}": {
            "targets": [{"provider": "real", "model": name_model(running, protocol)}],
            "policy": {"replies": policy},
        }
        for protocol in (*_BY_PROTOCOL, "responses")
        for policy in POLICIES
    }
    provider = {
        "dialect": "openai",
        "base_url": running.base_url,
        "api_key": server.api_key,
        "protocols": list(server.models),
    }
    return Config.from_values(
        {"providers": {"real": provider}, "models": models, "server": {"port": 0, "drain": {"delay": 0.001}}}
    )


def name_model(running: RunningServer, protocol: str) -> str:
    """Return the model's name at the server; for a protocol that it does not serve, the name that chat has there."""
    models = running.server.models
    return models.get(protocol) or models.get("chat") or next(iter(models.values()))


async def _ask_everywhere(
    question: Question, running: RunningServer, direct: AsyncOpenAI, through: AsyncOpenAI, log: io.BytesIO
) -> Comparison:
    first = await ask(question, direct, name_model(running, question.protocol))
    outcomes: dict[str, Outcome] = {}
    for policy in POLICIES:
        log.seek(0)
        log.truncate()
        outcome = await ask(question, through, f"{question.protocol}-{policy}")
        outcomes[policy] = Outcome(outcome.state, outcome.text, outcome.facts, await _read_losses(log))
    return Comparison(question.name, first, outcomes)


async def ask(question: Question, client: AsyncOpenAI, model: str) -> Outcome:
    """Ask one question. Whatever the SDK raises becomes an outcome."""
    facts: Facts = {}
    try:
        facts = await question.ask(client, model)
        question.check(facts)
    except WrongAnswer as error:
        return Outcome("wrong", str(error), facts)
    except openai.APIStatusError as error:
        return Outcome("refused", _describe_refusal(error))
    except openai.APIConnectionError as error:
        return Outcome("broken", f"{type(error).__name__}: {error.__cause__ or error}")
    except openai.APIError as error:
        return Outcome("refused", f"in the stream: {error.code or error.type} {error.message}")
    except (openai.OpenAIError, pydantic.ValidationError, ValueError) as error:
        return Outcome("wrong", f"{type(error).__name__}: {error}".partition("\n")[0])
    except (AttributeError, AssertionError, IndexError, KeyError, RuntimeError, TypeError) as error:
        return Outcome("broken", f"{type(error).__name__} in the SDK: {error}".partition("\n")[0])
    return Outcome("right", "", facts)


def _describe_refusal(error: openai.APIStatusError) -> str:
    message = error.body.get("message") if isinstance(error.body, dict) else None
    if message is None and isinstance(error.body, dict):
        message = error.body.get("detail")
    return f"{error.status_code} {error.code or ''} {message or error.response.text}"[:400]


async def _read_losses(log: io.BytesIO) -> tuple[str, ...]:
    """Wait for the line of the exchange, and return the changes that lost something."""
    for _ in range(100):
        if log.getvalue():
            break
        await asyncio.sleep(0.01)
    found = []
    for line in log.getvalue().splitlines():
        for change in json.loads(line).get("changes", ()):
            if change["weight"] == "loss":
                found.append(f"{change.get('before') or change.get('after')}: {change['reason']}")
    return tuple(dict.fromkeys(found))


async def _stop(proxy: RunningProxy) -> None:
    proxy.stop_now.set()
    await proxy.stop()


def judge(direct: Outcome, through: Outcome, policy: str, ignored: tuple[str, ...] = ()) -> Verdict:
    """Compare two outcomes. Only `strict` may refuse what works directly: it does so for a violation that it names."""
    if direct.state == "right":
        if through.state == "right":
            different = [key for key, value in direct.facts.items() if value != through.facts[key]]
            return "DIFFERS" if set(different) - set(ignored) else "same"
        return "refused" if through.state == "refused" and policy == "strict" else "BREAKS"
    if through.state == "right":
        return "repaired"
    if through.state == "refused":
        return "as direct" if direct.state == "refused" else "refused"
    if through.losses:
        return "recorded"
    return "as direct" if direct.state == through.state else "wrong"
