"""Quirks: what servers send that no reference describes, byte by byte, with what a client must get.

The files are in `contract/quirks`, and `schemas/quirks.json` describes them. A fake provider plays a quirk as the
behaviour `quirk(name=...)`; `quirk_cases` makes contract cases of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from .json_types import JsonObject, JsonValue

__all__ = ["Quirk", "find_quirk", "load_quirks"]


@dataclass(frozen=True, slots=True)
class Quirk:
    """One quirk. `whole` and `streamed` are the server's answers to a request for a whole reply and for a stream, None
    if it has none; `protocol` is what the server serves, `clients` are the protocols of the clients that meet it."""

    name: str
    about: str
    title: str
    servers: str
    source: str
    protocol: str
    ask: str
    upstream: str
    clients: tuple[str, ...]
    expect: JsonObject
    whole: JsonValue = None
    streamed: JsonValue = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    done: bool = True

    @property
    def is_error(self) -> bool:
        """Whether a client must get an error."""
        return "status" in self.expect

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms that the server's answer has: `whole`, `streamed` or both."""
        return tuple(form for form in ("whole", "streamed") if getattr(self, form) is not None)


def find_quirk(name: str) -> Quirk | None:
    return load_quirks().get(name)


@cache
def load_quirks() -> Mapping[str, Quirk]:
    """Load all quirks by name, as `calls/no-index`. Raises ValueError if a file is invalid."""
    found: dict[str, Quirk] = {}
    for file in sorted(files(__package__).joinpath("quirks").iterdir(), key=lambda one: one.name):
        for quirk in _read_file(file.name, YAML(typ="safe").load(file.read_text("utf-8"))):
            if quirk.name in found:
                raise ValueError(f"{file.name}: two quirks have the name {quirk.name}")
            found[quirk.name] = quirk
    return found


def _read_file(name: str, content: Any) -> Iterator[Quirk]:
    schema = json.loads(files(__package__).joinpath("schemas", "quirks.json").read_text("utf-8"))
    for error in Draft202012Validator(schema).iter_errors(content):
        raise ValueError(f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message}")
    protocol = content.get("protocol", "chat")
    clients = ["chat", "responses"] if protocol == "chat" else [protocol]
    for text in content["quirks"]:
        both = text.get("both")
        yield Quirk(
            name=f"{content['group']}/{text['name']}",
            about=content["about"],
            title=text["title"],
            servers=text["servers"],
            source=text["source"],
            protocol=protocol,
            ask=text.get("ask", content.get("ask", "text")),
            upstream=text.get("upstream", "openai"),
            clients=tuple(text.get("clients", clients)),
            expect=text["expect"],
            whole=text.get("whole", both),
            streamed=text.get("streamed", both),
            status=text.get("status", 200),
            headers=text.get("headers", {}),
            done=text.get("done", True),
        )
