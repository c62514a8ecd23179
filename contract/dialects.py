"""The dialects as endpoints: what a fake of each answers, and what cases expect of one.

All of it is data: `fake.json` in the dialect's folder, read as a resource, so that the suite needs no adapter. Its
shape is `schemas/fake.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import quote

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = [
    "DEFAULT",
    "DIALECTS",
    "BadData",
    "Dialect",
    "Errors",
    "Extras",
    "Json",
    "dialect",
    "dialects_with",
    "path_of",
]

Json: TypeAlias = dict[str, Any]
Templates: TypeAlias = Mapping[str, Any]
"""JSON with placeholders such as `${message}`."""

DEFAULT = "openai"
_ROOT = files("dragoman.adapters")
_FILE = "fake.json"

DIALECTS: tuple[str, ...] = tuple(
    sorted(
        (folder.name for folder in _ROOT.iterdir() if folder.joinpath(_FILE).is_file()),
        key=lambda name: (name != DEFAULT, name),
    )
)
"""Every dialect that there is a fake of, the default one first."""


class BadData(ValueError):
    """A dialect's `fake.json` does not have the shape that it must have."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What the service makes of fields that it does not know: it ignores them, refuses them with the error of that
    name, or asks the header `extra-parameters`, whose `words` depend on the profile; `headers` go with the refusal of
    another word."""

    rule: Literal["ignored", "refused", "by header"] = "ignored"
    error: str = ""
    words: Mapping[str, list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Errors:
    """The service's form of an error.

    `statuses` are those of a body that breaks the schema (`invalid`), of one that is no JSON object (`malformed`) and
    of an unknown model. `codes` and `types` map a status, `5xx` or `else` to the service's word; `malformed` is its
    code for bad JSON. `forms` are templates of replies: the first whose status and profile fit. `located` is the
    message of an error that has a path. `names_parameters` is false if the service names a parameter only in the
    message. `unknown_path` is the code for an address that it does not have, or says that it answers nothing there.
    `version` is the form of an error about the query, `event` that of an error inside a stream, unless it is the body
    of a reply. `messages` are the paths at which an error may have its message, `place` that of the path it blames.
    """

    forms: tuple[Templates, ...]
    messages: tuple[str, ...]
    place: str = ""
    statuses: Mapping[str, int] = field(default_factory=dict)
    located: str = "${message}"
    codes: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    malformed: str = ""
    names_parameters: bool = True
    unknown_path: Mapping[str, Any] = field(default_factory=dict)
    version: Templates | None = None
    event: Any = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One dialect's data. Paths follow the base address, which is an origin and `root`; cases ask the first path of
    each protocol. `{model}` is a placeholder for the model; such a path serves other protocols too. `models` is the
    reply at the path of that name.

    `key` is how clients present a key: header -> form; `accepted_keys` are the forms that the fake takes, none if it
    looks at none. `query` is what every request's query has. `judged_in` is the profile in which cases judge unless
    another is asked for. `tags` are further words by which cases may name the dialect. `finish` maps its own finish
    reasons to OpenAI's. `replies` maps protocols to the form of their replies, `profiles` has what differs in each.
    `behaviours` are those that only some dialects have, `harmless` maps behaviours that are no fault here to the
    reason. `odd_errors` are error forms that were seen in the field, each as it came.
    """

    name: str
    paths: Mapping[str, list[str]]
    errors: Errors
    replies: Mapping[str, Json]
    profiles: Mapping[str, Mapping[str, Json]]
    root: str = ""
    models: Json | None = None
    key: Mapping[str, str] = field(default_factory=lambda: {"Authorization": "Bearer {key}"})
    accepted_keys: Mapping[str, str] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    judged_in: str = "actual"
    tags: tuple[str, ...] = ()
    finish: Mapping[str, str] = field(default_factory=dict)
    extras: Extras = Extras()
    behaviours: tuple[str, ...] = ()
    harmless: Mapping[str, str] = field(default_factory=dict)
    odd_errors: Mapping[str, Json] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """By what cases may name it, its own name first."""
        return (self.name, *self.tags)

    def reply_form(self, protocol: str, profile: str) -> Json:
        """What is special about the replies of a protocol in a profile."""
        return {**self.replies.get(protocol, {}), **self.profiles[profile].get(protocol, {})}


@cache
def dialect(name: str) -> Dialect:
    """The data of one dialect. Raises KeyError if there is no such dialect, BadData if its file is wrong."""
    if name not in DIALECTS:
        raise KeyError(name)
    data = json.loads(_ROOT.joinpath(name, _FILE).read_text("utf-8"))
    for error in _shape().iter_errors(data):
        place = "/".join(map(str, error.instance_path)) or "the file"
        raise BadData(f"adapters/{name}/{_FILE}: {place}: {error.message}")
    errors, extras = Errors(**data.pop("errors")), Extras(**data.pop("extras", {}))
    return Dialect(name, errors=errors, extras=extras, **data)


def dialects_with(behaviour: str) -> tuple[str, ...]:
    """The dialects that have a behaviour which not all have."""
    return tuple(name for name in DIALECTS if behaviour in dialect(name).behaviours)


def path_of(name: str, protocol: str, model: str) -> str:
    """Where cases ask for a protocol, after the base address. Raises KeyError if the dialect does not have it."""
    return dialect(name).paths[protocol][0].replace("{model}", quote(model, safe=""))


@cache
def _shape() -> jsonschema_rs.Draft202012Validator:
    import jsonschema_rs  # the command line, which only wants names, does without

    return jsonschema_rs.Draft202012Validator(
        json.loads(files(__package__).joinpath("schemas", _FILE).read_text("utf-8"))
    )
