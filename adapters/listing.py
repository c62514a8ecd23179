"""Models as clients may know them: what a dialect's lists of models are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .call import Call, JsonObject

__all__ = ["Information", "ListedModel", "Task", "list_as_openai"]

Task: TypeAlias = Literal["chat", "completions", "embeddings"]


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model that a caller may use: its name, what it is for, and since when it is configured, in seconds of Unix
    time."""

    name: str
    task: Task
    since: int


@dataclass(frozen=True, slots=True)
class Information:
    """What a dialect answers at an address that describes models. `about` says which models: all that the caller may
    use, the one that the address names, the one that a request without a model's name would get, or none; an answer
    about none needs no key.

    `write` gets those models and the client's call, and raises Fault for a call that the dialect does not allow.
    `paths` are the patterns of such addresses; `{name}` is all the rest.
    """

    about: Literal["all", "named", "default", "none"]
    write: Callable[[Sequence[ListedModel], Call], JsonObject]
    paths: tuple[str, ...]


def list_as_openai(owner: str, *paths: str) -> Mapping[str, Information]:
    """The lists of dialects that have OpenAI's, from the OpenAI OpenAPI document 2.3: ListModelsResponse and Model.
    One model is found below each of the paths."""

    def entry(model: ListedModel) -> JsonObject:
        return {"id": model.name, "object": "model", "created": model.since, "owned_by": owner}

    def models(models: Sequence[ListedModel], _call: Call) -> JsonObject:
        return {"object": "list", "data": [entry(model) for model in models]}

    def model(models: Sequence[ListedModel], _call: Call) -> JsonObject:
        (one,) = models
        return entry(one)

    named = tuple(f"{path}/{{name}}" for path in paths)
    return {"models": Information("all", models, paths), "model": Information("named", model, named)}
