"""The requests that learning sends: data of `probes.yaml`, whose schema is `contract/schemas/probes.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from dragoman.contract.json_types import JsonObject

__all__ = ["FieldProbe", "Probes", "ProtocolProbe", "count_tokens", "load_probes"]

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_CHARACTERS_OF_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class ProtocolProbe:
    """The smallest good request of a protocol. Every whole reply has the path `reply`; `limits` are the names of the
    limit on tokens, the usual one first; `forms` are changes that show the other forms of the answer; `optional` are
    keys of the body that may be left out."""

    name: str
    body: JsonObject
    reply: str
    limits: tuple[str, ...]
    forms: tuple[JsonObject, ...]
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldProbe:
    """The ways to use one field, each a merge patch of the protocol's request. `shows` names what an answer shows if
    the field was honored, empty if nothing does; `needs` is a field without which this one means nothing."""

    field: str
    send: tuple[JsonObject, ...]
    shows: str = ""
    needs: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether the field can be asked for together with others: nothing but its acceptance is looked at."""
        return len(self.send) == 1 and self.send[0].keys() == {self.field} and not self.shows and not self.needs


@dataclass(frozen=True, slots=True)
class Probes:
    protocols: Mapping[str, ProtocolProbe]
    fields: Mapping[str, tuple[FieldProbe, ...]]


@cache
def load_probes() -> Probes:
    """Load the probes. Raises ValueError if the file is invalid."""
    content = YAML(typ="safe").load(files(__package__).joinpath("probes.yaml").read_text("utf-8"))
    schema = json.loads(files("dragoman.contract").joinpath("schemas", "probes.json").read_text("utf-8"))
    for error in Draft202012Validator(schema).iter_errors(content):
        raise ValueError(f"probes.yaml: {'/'.join(map(str, error.absolute_path))}: {error.message}")
    forms = content["forms"]
    return Probes(
        {name: _read_protocol(name, text, forms.get(name, ())) for name, text in content["protocols"].items()},
        {name: tuple(_read_field(text) for text in texts) for name, texts in content["fields"].items()},
    )


def _read_protocol(name: str, text: JsonObject, forms: Any) -> ProtocolProbe:
    limits, optional = tuple(text["limits"]), tuple(text.get("optional", ()))
    return ProtocolProbe(name, text["body"], text["reply"], limits, tuple(forms), optional)


def _read_field(text: JsonObject) -> FieldProbe:
    return FieldProbe(text["field"], tuple(text["send"]), text.get("shows", ""), text.get("needs", ""))


def count_tokens(body: JsonObject) -> int:
    """Estimate the most tokens that a request costs: what the model reads, and what it may write."""
    limit = next((body[name] for name in _LIMITS if isinstance(body.get(name), int)), 0)
    choices = body.get("n")
    written = limit * (choices if isinstance(choices, int) else 1)
    return written + len(json.dumps(body, ensure_ascii=False)) // _CHARACTERS_OF_A_TOKEN
