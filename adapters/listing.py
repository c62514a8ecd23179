"""Models as dialects describe them to clients, and as providers list them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .call import Call, JsonObject
from .faults import Fault

__all__ = ["Information", "ListedModel", "ModelList", "Task", "list_as_openai"]

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


@dataclass(frozen=True, slots=True)
class ModelList:
    """Where a provider lists its models: `path` is appended to its base address, with `query` and `headers`; `items` is
    the key of the list in the reply, `name` the key of a model's name in an item."""

    path: str
    items: str = "data"
    name: str = "id"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def read_names(self, body: object) -> list[str]:
        """The names in a reply, parsed JSON; items without one are left out. Raises Fault if there is no list."""
        items = body.get(self.items) if isinstance(body, dict) else None
        if not isinstance(items, list):
            raise Fault("upstream_invalid_response", "the reply is no list of models", (self.items,))
        names = (item.get(self.name) for item in items if isinstance(item, dict))
        return [name for name in names if isinstance(name, str)]


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
