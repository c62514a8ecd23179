"""What a dialect is: a name, its profiles, eight verbs for each of its protocols, and its data.

*Read* goes from the dialect to the hub form, *write* from the hub form to the dialect. A dialect that is **served**
reads requests and writes replies; one that is **called** writes requests and reads replies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from .call import Call, Context, JsonObject, Reply
from .emulation.interface import Emulation
from .faults import Fault
from .listing import Information, ModelList
from .providers import AddressForm, BaseAddress, EnvironmentProvider, Vendor
from .rate_headers import RateHeaders
from .streams import StreamReader, StreamWriter

__all__ = ["COMPANIONS", "NEVER_CALLED", "Called", "Dialect", "Served", "prefix"]

COMPANIONS: Mapping[str, str] = {"count_tokens": "messages"}
"""Protocols that are another operation of one: a provider that is used for that is used for them if its dialect has
them, and the configuration does not name them."""


@dataclass(frozen=True, slots=True)
class Served:
    """The verbs toward a client. All raise Fault."""

    read_request: Callable[[Call, Context], JsonObject]
    write_reply: Callable[[JsonObject, Context], Reply]
    write_stream: Callable[[Context], StreamWriter]
    write_fault: Callable[[Fault, Context], Reply]


@dataclass(frozen=True, slots=True)
class Called:
    """The verbs toward a provider. `write_request` never alters its argument.

    `write_request` and `read_reply` raise Fault. `read_fault` accepts any bytes. `batching` is how
    a request that is too large for one call becomes several calls; None if none is.
    """

    write_request: Callable[[JsonObject, Context], Call]
    read_reply: Callable[[Reply, Context], JsonObject]
    read_stream: Callable[[Context], StreamReader]
    read_fault: Callable[[Reply, Context], Fault]
    batching: Emulation | None = None


def _refuse_call(*_: object) -> NoReturn:
    raise AssertionError("nothing is called")


NEVER_CALLED = Called(_refuse_call, _refuse_call, _refuse_call, _refuse_call)
"""The verbs toward a provider that is not called, because dragoman answers itself."""


def prefix(name: str, *paths: str) -> tuple[str, ...]:
    """Return each path twice: as the dialect's clients know it, and below `/<name>`, which no other dialect uses."""
    return tuple(either for path in paths for either in (path, f"/{name}{path}"))


@dataclass(frozen=True, slots=True)
class Dialect:
    """A vendor's variant of the protocols, with everything that the rest of dragoman needs to know about it.

    **Protocols.** `served` and `called` map a protocol to its verbs. `profiles` are the variants of the dialect;
    `served_profile` and `called_profile` apply unless the configuration names others. `default_protocols` are those
    that a provider is used for unless its configuration lists its protocols.

    **Toward clients.** `paths` maps each served protocol to patterns of paths; `{name}` is one segment. If the dialect
    has `choose_protocol`, a path with a name serves all protocols: the function returns the one that a call asks for,
    given a function from a model to the task that is configured for it. `query` maps the parameters that a client's
    query must have to a valid value. `stored_protocols` are those whose replies are stored: a client gets each one
    below the path that made it. `deployment_header` is the request header with which clients pick one of a model's
    targets. `information` maps names to the dialect's addresses that describe models. `forwarded` names the provider's
    response headers that clients rely on. `rate_headers` tell clients what their limits leave them.
    `headers` maps the headers that a client's request must have to a valid value; they also tell its clients apart
    where another dialect has the same address. `request_id_header` is the response header in which clients look for the
    id of their request, in addition to x-request-id.

    **Toward providers.** `auth` names the ways to present a key, the first being the default: header name -> template.
    `base_address` says what calls append to a provider's address, `address_forms` which other forms of address there
    are. `settings` are the keys of a provider's configuration that only this dialect has. `environment` are the
    providers that exist if their variables are set, `vendors` maps LiteLLM's names of vendors to their data.
    `model_list` says where providers list their models, None if they do not, or only under another form of address.
    `summarizes_reasoning` is true if replies hold a summary of the model's reasoning, `keeps_responses` if providers
    may keep responses and continue them, `is_hub_form` if the dialect's forms are those of the hub, extensions
    included. `telemetry_name` is OpenTelemetry's name for providers of the dialect, unless it is the same.
    """

    name: str
    auth: Mapping[str, Mapping[str, str]]
    profiles: tuple[str, ...] = ("documented", "actual")
    served_profile: str = "actual"
    called_profile: str = "actual"
    served: Mapping[str, Served] = field(default_factory=dict)
    called: Mapping[str, Called] = field(default_factory=dict)
    default_protocols: tuple[str, ...] = ("chat",)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    choose_protocol: Callable[[Call, Callable[[str], str | None]], str] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    stored_protocols: frozenset[str] = frozenset()
    deployment_header: str | None = None
    information: Mapping[str, Information] = field(default_factory=dict)
    forwarded: tuple[str, ...] = ()
    rate_headers: RateHeaders = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    request_id_header: str | None = None
    base_address: BaseAddress | None = None
    address_forms: Mapping[str, AddressForm] = field(default_factory=dict)
    settings: frozenset[str] = frozenset()
    environment: tuple[EnvironmentProvider, ...] = ()
    vendors: Mapping[str, Vendor] = field(default_factory=dict)
    model_list: ModelList | None = None
    summarizes_reasoning: bool = False
    keeps_responses: bool = False
    is_hub_form: bool = False
    telemetry_name: str = ""

    def served_paths(self, protocol: str) -> tuple[str, ...]:
        """Return all patterns of paths that serve the protocol, those of other forms of address last."""
        forms = (path for form in self.address_forms.values() for path in form.paths.get(protocol, ()))
        return (*self.paths[protocol], *forms)

    def list_default_protocols(self, form: str | None) -> tuple[str, ...]:
        """Return the protocols of a provider whose configuration names none. `form` is its form of address, None for
        the usual one."""
        if form is None:
            return self.default_protocols
        served = self.address_forms[form].paths
        return tuple(name for name in self.default_protocols if name in served) or tuple(served)

    def default_auth(self, form: str | None, *, token: bool) -> str:
        """Return the key of `auth` for a provider whose configuration names none.

        `form` is the provider's form of address, None for the usual one. A token, as opposed to a key, is always sent
        as a bearer token.
        """
        if token:
            return "bearer"
        return next(iter(self.auth)) if form is None else self.address_forms[form].auth
