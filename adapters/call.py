"""The values that the verbs of a dialect work on."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from .changes import Receipt

__all__ = ["Call", "Context", "Headers", "JsonObject", "Policy", "Reply", "Target", "new_id"]

JsonObject: TypeAlias = dict[str, Any]
Headers: TypeAlias = Mapping[str, str]


def new_id(prefix: str) -> str:
    """`prefix_` and 32 random hexadecimal digits."""
    return f"{prefix}_{uuid.uuid4().hex}"


_NOTHING: Mapping[str, str] = MappingProxyType({})


class Call(NamedTuple):
    """A request. `path` is relative to the provider's base address; a client's header names are matched in any case."""

    method: str
    path: str
    body: JsonObject
    query: Mapping[str, str] = _NOTHING
    headers: Headers = _NOTHING


class Reply(NamedTuple):
    """An answer. `raw` holds the bytes as received; `body` the parsed JSON object, empty if there was none."""

    status: int
    body: JsonObject
    headers: Headers = _NOTHING
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Policy:
    """What to do if a request, or a reply, does not fit. `emulate_completions`: a chat model may serve completions."""

    extra_parameters: Literal["error", "drop", "pass-through"] = "pass-through"
    unsupported: Literal["refuse", "drop"] = "refuse"
    out_of_range: Literal["error", "clamp", "drop"] = "error"
    replies: Literal["off", "report", "repair", "strict"] = "repair"
    emulate_completions: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """What an adapter may know of the upstream that a request goes to.

    `model` is the upstream's name for it, `lacks` are hub fields that it cannot serve, `limits` are maxima by field
    name, `kind` is Databricks' endpoint kind, `api_version` and `deployment` are Azure's. `address` is the dialect's
    form of address, None the usual one. `summarizes_reasoning` is true if a reply holds a summary of the model's
    reasoning, not the reasoning itself.
    """

    model: str
    profile: str = "actual"
    policy: Policy = Policy()
    lacks: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)
    kind: str | None = None
    api_version: str | None = None
    deployment: str | None = None
    address: str | None = None
    summarizes_reasoning: bool = False


_NO_TARGET = Target("")


class Context(NamedTuple):
    """What a verb may read in addition to its argument. The receipt is the only part that it writes to.

    `call` is the client's. `request` is the request in hub form: empty for `read_request`. `needs_first_choice` is true
    if the answer is translated into a protocol that has room for one choice: choice 0. `accepted_by` is the validator
    that accepted the body of `call`: a target with the same schema does not validate it again.
    """

    profile: str
    call: Call
    receipt: Receipt
    target: Target = _NO_TARGET
    request: JsonObject = {}  # noqa: RUF012 - a request is never altered
    clock: Callable[[], float] = time.time
    new_id: Callable[[str], str] = new_id
    needs_first_choice: bool = False
    accepted_by: object = None
