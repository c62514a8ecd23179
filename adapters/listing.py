"""Models as clients may know them: what a dialect's lists of models are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .call import Call, JsonObject

__all__ = ["Information", "Listed", "Task", "lists_as_openai"]

Task: TypeAlias = Literal["chat", "completions", "embeddings"]


@dataclass(frozen=True, slots=True)
class Listed:
    """A model that a caller may use: its name, what it is for, and since when it is configured, in seconds of Unix
    time."""

    name: str
    task: Task
    since: int


@dataclass(frozen=True, slots=True)
class Information:
    """What a dialect answers at an address that tells of models. `about` says of which: of all that the caller may use,
    of the one that the address names, of the one that a request without a model's name would get, or of none; an answer
    that tells of none needs no key.

    `write` gets those models and the client's call, and raises Fault for a call that the dialect does not allow.
    """

    about: Literal["all", "named", "default", "none"]
    write: Callable[[Sequence[Listed], Call], JsonObject]


def lists_as_openai(owner: str) -> Mapping[str, Information]:
    """The lists of dialects that have OpenAI's, from the OpenAI OpenAPI document 2.3: ListModelsResponse and Model."""

    def entry(model: Listed) -> JsonObject:
        return {"id": model.name, "object": "model", "created": model.since, "owned_by": owner}

    def models(models: Sequence[Listed], _call: Call) -> JsonObject:
        return {"object": "list", "data": [entry(model) for model in models]}

    def model(models: Sequence[Listed], _call: Call) -> JsonObject:
        (one,) = models
        return entry(one)

    return {"models": Information("all", models), "model": Information("named", model)}
