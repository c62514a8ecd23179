"""The values that the verbs of a dialect work on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import urandom
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from .changes import Receipt
from .model_facts import ModelFacts, Refusal, find_facts
from .opt_ins import OptIns

__all__ = [
    "NO_TARGET",
    "Call",
    "Context",
    "Headers",
    "JsonObject",
    "MaxTokensName",
    "Policy",
    "Reply",
    "Target",
    "new_id",
]

JsonObject: TypeAlias = dict[str, Any]
Headers: TypeAlias = Mapping[str, str]
Replay: TypeAlias = Literal["keep", "rename", "drop"]
ReasoningTags: TypeAlias = bool | Literal["implied"]
MaxTokensName: TypeAlias = Literal["max_tokens", "max_completion_tokens"]


def new_id(prefix: str) -> str:
    """Return a new id: `prefix`, an underscore and 32 random hexadecimal digits."""
    return f"{prefix}_{urandom(16).hex()}"


_NOTHING: Mapping[str, str] = MappingProxyType({})


class Call(NamedTuple):
    """An HTTP request with a JSON body. `path` is relative to the provider's base address. The names of a client's
    headers are matched in any case."""

    method: str
    path: str
    body: JsonObject
    query: Mapping[str, str] = _NOTHING
    headers: Headers = _NOTHING


class Reply(NamedTuple):
    """An HTTP response. `raw` holds its body as received, `body` the parsed JSON object; empty if there is none."""

    status: int
    body: JsonObject
    headers: Headers = _NOTHING
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Policy:
    """What to do if a request or a reply does not fit. If `emulate_completions`, a chat model may serve completions.
    `refuse-exactly` also refuses what can be emulated, unless the result is exact. `stream_usage` says whether a
    provider is asked for the token counts of a stream if the client does not ask."""

    extra_parameters: Literal["error", "drop", "pass-through"] = "pass-through"
    unsupported: Literal["refuse", "refuse-exactly", "drop"] = "refuse"
    out_of_range: Literal["error", "clamp", "drop"] = "error"
    replies: Literal["off", "report", "repair", "strict"] = "repair"
    emulate_completions: bool = False
    stream_usage: Literal["ask", "leave"] = "leave"


_NO_OPT_INS = OptIns()


@dataclass(frozen=True, slots=True)
class Target:
    """The upstream that a request goes to, as far as an adapter needs to know it.

    `model` is the name that the upstream gives the model. `lacks` names fields that it does not support, `takes` fields
    that it accepts although its dialect's schema does not; both mean the names that the client's hub request has and
    the names that are sent. `emulates` names fields that dragoman serves itself if the target does not accept them;
    `opt_ins` says how it serves what it serves only on request. `max_tokens_name` is its name for the limit on tokens;
    None means that the dialect decides.
    `limits` maps field names to their largest values. `kind` is the kind of a Databricks endpoint, `api_version` and
    `deployment` are Azure's. `address` names one of the dialect's other forms of address; None means the usual form.
    `summarizes_reasoning` is true if replies hold a summary of the model's reasoning instead of the reasoning itself.
    `reasoning_replay` says how the reasoning of earlier turns goes back to it; None means that `host`, the name of its
    address, the model's family or the dialect decides. `reasoning_tags` says whether replies have tags around
    reasoning. `dialect` is that of the provider, empty if it does not matter. `without_usage` are the models that
    turned out to refuse to be asked for the usage of streams; all targets that are made of this one share it.

    `facts` are what is documented about the model. `refuses` are the parameters that it refuses, without those that the
    target takes, and `most_output` is the most tokens that it generates. Both are empty if the service is not known to
    hold requests to them and the policy would refuse a request for it: the service may ignore what the model refuses.
    `alters_requests` is true if the target has rules about single fields, besides the limit on tokens.
    """

    model: str
    profile: str = "actual"
    policy: Policy = Policy()
    lacks: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()
    emulates: frozenset[str] = frozenset()
    opt_ins: OptIns = _NO_OPT_INS
    max_tokens_name: MaxTokensName | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    kind: str | None = None
    api_version: str | None = None
    deployment: str | None = None
    address: str | None = None
    summarizes_reasoning: bool = False
    reasoning_replay: Replay | None = None
    reasoning_tags: ReasoningTags = False
    host: str = ""
    dialect: str = ""
    without_usage: set[str] = field(default_factory=set, repr=False, compare=False)
    facts: ModelFacts = field(init=False, repr=False, compare=False)
    refuses: Mapping[str, Refusal] = field(init=False, repr=False, compare=False)
    most_output: int | None = field(init=False, repr=False, compare=False)
    alters_requests: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        facts = find_facts(self.model, self.dialect, self.host)
        may_drop = self.policy.unsupported == "drop"
        is_limited = "max_tokens" not in self.limits and (facts.are_enforced or self.policy.out_of_range != "error")
        refuses = {
            name: refusal
            for name, refusal in facts.refuses.items()
            if (refusal.is_enforced or may_drop) and name not in self.takes
        }
        object.__setattr__(self, "facts", facts)
        object.__setattr__(self, "refuses", refuses)
        object.__setattr__(self, "most_output", facts.output if is_limited else None)
        alters = self.lacks or self.takes or self.limits or refuses or facts.efforts
        object.__setattr__(self, "alters_requests", bool(alters))


NO_TARGET = Target("")
"""The target of a context that has none yet."""


class Context(NamedTuple):
    """What a dialect's verb may read in addition to its argument. It writes to the receipt only.

    `call` is the client's. `request` is the request in hub form; it is empty for `read_request`. `needs_first_choice`
    is true if the reply is translated into a protocol whose replies hold one choice: choice 0. `accepted_by` is the
    validator that accepted the body of `call`: a target with the same schema does not validate it again. It is None if
    the provider speaks another protocol than the client. `request_id` is the id of the exchange, empty without one.
    `middle` is the request of the protocol between the client's and the provider's, if it is translated twice.
    """

    profile: str
    call: Call
    receipt: Receipt
    target: Target = NO_TARGET
    request: JsonObject = {}  # noqa: RUF012 - a request is never altered
    clock: Callable[[], float] = time.time
    new_id: Callable[[str], str] = new_id
    needs_first_choice: bool = False
    accepted_by: object = None
    request_id: str = ""
    middle: JsonObject = {}  # noqa: RUF012 - as above

    def with_request(self, request: JsonObject) -> Context:
        """The same context of another request, in a fourth of the time of `_replace`."""
        profile, call, receipt, target, _, clock, create, first, validator, request_id, middle = self
        return Context(profile, call, receipt, target, request, clock, create, first, validator, request_id, middle)
