"""Models as dialects describe them to clients: in lists of models, and one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .call import Call, JsonObject

__all__ = ["Information", "ListedModel", "Task", "list_as_openai"]

Task: TypeAlias = Literal["chat", "completions", "embeddings"]


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model that a caller may use. `since` is the time when it was configured, in Unix seconds."""

    name: str
    task: Task
    since: int


@dataclass(frozen=True, slots=True)
class Information:
    """The addresses of a dialect that describe models, and how to answer there.

    `about` says which models: `all` that the caller may use; the one `named` by the address; the `default`, which a
    request without a model gets; or `none`, and then the caller needs no key. `write` makes the reply from those models
    and the client's call; it raises Fault if the dialect does not allow the call. `paths` are patterns of paths;
    `{name}` is all the rest of a path.
    """

    about: Literal["all", "named", "default", "none"]
    write: Callable[[Sequence[ListedModel], Call], JsonObject]
    paths: tuple[str, ...]


def list_as_openai(owner: str, *paths: str) -> Mapping[str, Information]:
    """Make the list of models at `paths`, and the models below them, in OpenAI's form; `owner` is their `owned_by`.

    Source: the OpenAI OpenAPI document 2.3, ListModelsResponse and Model.
    """

    def entry(model: ListedModel) -> JsonObject:
        return {"id": model.name, "object": "model", "created": model.since, "owned_by": owner}

    def models(models: Sequence[ListedModel], _call: Call) -> JsonObject:
        return {"object": "list", "data": [entry(model) for model in models]}

    def model(models: Sequence[ListedModel], _call: Call) -> JsonObject:
        (one,) = models
        return entry(one)

    named = tuple(f"{path}/{{name}}" for path in paths)
    return {"models": Information("all", models, paths), "model": Information("named", model, named)}
