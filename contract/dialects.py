"""The dialects as endpoints: what a fake of each sends, and what the cases expect of one.

All of it is data in `fake.json` in the dialect's folder. The suite reads that file as a resource and imports no
adapter. The schema of the file is `schemas/fake.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote

from .json_types import JsonObject, JsonValue

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = [
    "DEFAULT_DIALECT",
    "DIALECTS",
    "Dialect",
    "DialectDataError",
    "ErrorForms",
    "ExtrasRule",
    "VersionRule",
    "build_path",
    "list_dialects_with",
    "load_dialect",
]

Templates: TypeAlias = Mapping[str, JsonValue]
"""JSON with placeholders such as `${message}`."""

DEFAULT_DIALECT = "openai"
_ROOT = files("dragoman.adapters")
_FILE = "fake.json"

DIALECTS: tuple[str, ...] = tuple(
    sorted(
        (folder.name for folder in _ROOT.iterdir() if folder.joinpath(_FILE).is_file()),
        key=lambda name: (name != DEFAULT_DIALECT, name),
    )
)
"""Every dialect with a fake, the default one first."""


class DialectDataError(ValueError):
    """A dialect's `fake.json` violates its schema."""


@dataclass(frozen=True, slots=True)
class ExtrasRule:
    """What the service does with unknown fields: it ignores them, refuses them with the observed error `error`, or
    obeys the request header `extra-parameters`. `values` maps a profile to the values of that header; the reply that
    refuses another value has `headers`."""

    rule: Literal["ignored", "refused", "by header"] = "ignored"
    error: str = ""
    values: Mapping[str, list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ErrorForms:
    """The errors of a service.

    `statuses` has the status for a body that violates the schema (`invalid`), for a body that is no JSON object
    (`malformed`) and for an unknown model. `codes` and `types` map a status, `5xx` or `else` to the service's code and
    type; `malformed` is its code for invalid JSON. `sentences` maps a keyword of JSON Schema to the service's message
    for a value that violates it. `forms` are templates of replies; the first that matches the status
    and the profile is used. `located` is the message of an error that has a path. `names_parameters` is false if the
    service names a parameter only in the message. `unknown_path` has the code for an unknown path, or says that the
    reply is empty. `version` is the form of an error about the query. `event` is the form of an error in a stream;
    without it, the stream has the body of a reply. `messages` are the paths at which an error may have its message,
    `param` is the path at which it names the wrong field.
    """

    forms: tuple[Templates, ...]
    messages: tuple[str, ...]
    param: str = ""
    statuses: Mapping[str, int] = field(default_factory=dict)
    located: str = "${message}"
    codes: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    malformed: str = ""
    names_parameters: bool = True
    sentences: Mapping[str, str] = field(default_factory=dict)
    unknown_path: Mapping[str, JsonValue] = field(default_factory=dict)
    version: Templates | None = None
    event: JsonValue = None


@dataclass(frozen=True, slots=True)
class VersionRule:
    """The header that names the version of the API. `values` maps a version to a JSON Schema of what it demands of a
    request beyond the schema of its protocol; `missing` and `unknown` are the messages that refuse a request."""

    header: str
    values: Mapping[str, JsonObject]
    missing: str
    unknown: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """The data of one dialect.

    `paths` are relative to the base URL, which is an origin and `root`; cases request the first path of each protocol.
    `{model}` is a placeholder for the model; such a path serves several protocols. `models` is the reply at the path
    `models`. `key` maps a header to the form of the credential that clients send; `accepted_keys` are the forms that
    the fake accepts, empty if it checks no key. `query` and `headers` are the query and the headers of every request,
    `version` is the header that names the version of the API. `schema_profile` is the default
    profile of the schemas that replies are validated against. `tags` are other names of the dialect in cases. `finish`
    maps its own finish reasons to OpenAI's. `replies` maps a protocol to the form of its replies, and `profiles` maps
    a profile to what differs there. `behaviours` lists the behaviours that only some dialects have. `harmless` maps a
    behaviour that is no fault in this dialect to the reason. `observed_errors` are errors that real services send,
    each exactly as observed. `extensions` is true if most servers of the dialect take fields that its API lacks.
    """

    name: str
    paths: Mapping[str, list[str]]
    errors: ErrorForms
    replies: Mapping[str, JsonObject]
    profiles: Mapping[str, Mapping[str, JsonObject]]
    root: str = ""
    models: JsonObject | None = None
    key: Mapping[str, str] = field(default_factory=lambda: {"Authorization": "Bearer {key}"})
    accepted_keys: Mapping[str, str] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    version: VersionRule | None = None
    schema_profile: str = "actual"
    tags: tuple[str, ...] = ()
    finish: Mapping[str, str] = field(default_factory=dict)
    extras: ExtrasRule = ExtrasRule()
    extensions: bool = False
    behaviours: tuple[str, ...] = ()
    harmless: Mapping[str, str] = field(default_factory=dict)
    observed_errors: Mapping[str, JsonObject] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dialect in cases: its own name first, then its tags."""
        return (self.name, *self.tags)

    def select(self, values: Mapping[str, JsonValue]) -> JsonValue:
        """Select the value for this dialect from values by dialect or tag; None if there is none."""
        return next((values[name] for name in self.names if name in values), None)

    def reply_form(self, protocol: str, profile: str) -> JsonObject:
        """The properties of the replies of a protocol in a profile."""
        return {**self.replies.get(protocol, {}), **self.profiles[profile].get(protocol, {})}


@cache
def load_dialect(name: str) -> Dialect:
    """Load the data of a dialect. Raises KeyError if there is no such dialect, DialectDataError if its file is
    invalid."""
    if name not in DIALECTS:
        raise KeyError(name)
    data = json.loads(_ROOT.joinpath(name, _FILE).read_text("utf-8"))
    for error in _schema_validator().iter_errors(data):
        place = "/".join(map(str, error.instance_path)) or "the file"
        raise DialectDataError(f"adapters/{name}/{_FILE}: {place}: {error.message}")
    errors, extras = ErrorForms(**data.pop("errors")), ExtrasRule(**data.pop("extras", {}))
    version = VersionRule(**data.pop("version")) if "version" in data else None
    return Dialect(name, errors=errors, extras=extras, version=version, **data)


def list_dialects_with(behaviour: str) -> tuple[str, ...]:
    """List the dialects that have a behaviour; for behaviours that only some dialects have."""
    return tuple(name for name in DIALECTS if behaviour in load_dialect(name).behaviours)


def build_path(name: str, protocol: str, model: str) -> str:
    """Build the path of a protocol, relative to the base URL. Raises KeyError if the dialect does not have it."""
    return load_dialect(name).paths[protocol][0].replace("{model}", quote(model, safe=""))


@cache
def _schema_validator() -> jsonschema_rs.Draft202012Validator:
    import jsonschema_rs  # not at the top: the command line needs only the names, and starts faster without it

    return jsonschema_rs.Draft202012Validator(
        json.loads(files(__package__).joinpath("schemas", _FILE).read_text("utf-8"))
    )
