"""The page that lists what each pair of dialects loses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dragoman.adapters.call import Policy
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.pipeline import find_bridge
from dragoman.schemas import find_base

from .markdown import HEAD, code, lines, table
from .reply_losses import reply_table, stream_table
from .request_losses import ABSENT, request_table
from .trials import CARRIED, LENIENT, MODEL, PROVIDER_PROFILE, Client

__all__ = ["losses_page"]

_LEGEND = {
    CARRIED: "arrives as the client wrote it",
    "as `name`": "arrives under this name",
    "converted": "arrives in another form, with the same meaning",
    "moved": "arrives at another place in the conversation",
    "emulated": "dragoman itself does what it asks for ([emulation](emulation.md))",
    "not needed": "left out, with the same meaning",
    "converted, less exact": "arrives in a less exact form; recorded as a loss",
    "nearest value": "arrives as the nearest value that the provider accepts; recorded as a loss",
    "lost": "left out and recorded as a loss: it is advisory, or an unknown key",
    "refused (lost)": "refused by default; with the lenient policies left out and recorded as a loss",
    "refused (nearest value)": "refused by default; with the lenient policies the nearest value, recorded as a loss",
    "refused": "refused under every policy",
    ABSENT: "the client's dialect lacks it",
}
_REPLY_LEGEND = {
    CARRIED: "the client finds it at the same place as in the hub form",
    "as `name`": "the client finds it under this name",
    "inside `name`": "the client finds it there, within other text",
    "lost": "left out and recorded as a loss",
    "left out": "left out and not recorded",
    "a value": "the client finds this value instead",
}


_NOTHING = "Nothing is lost: everything reaches every client."
_TRANSLATED = "The provider speaks another protocol, into which dragoman translates the request."
_EMULATED = "With the policy `emulate_completions`. The prompt becomes a message, which is always recorded as a loss."


def losses_page(dialects: Mapping[str, Dialect]) -> str:
    served = [Client(dialect, dialect.served_profile) for dialect in dialects.values() if dialect.served]
    every = [Client(client.dialect, profile) for client in served for profile in client.dialect.profiles]
    body = [
        HEAD,
        "",
        *lines("# What gets lost"),
        *_introduction(served),
        *lines("## Requests", "A field that is not listed is carried from every client's dialect that has it."),
        *table(["Word", "Meaning"], _LEGEND.items()),
        *_requests(served, dialects, "chat"),
        *_requests([client for client in served if _has_own_schema(client, "messages")], dialects, "messages"),
        *_requests(served, dialects, "completions"),
        *_requests(served, dialects, "embeddings"),
        *lines(
            "## Replies of chat",
            "The same for replies: from the hub form, into which dragoman reads every provider's reply.",
        ),
        *table(["Word", "Meaning"], _REPLY_LEGEND.items()),
        *lines("### Whole replies"),
        *reply_table(_serving(every, "chat")),
        *lines("### Streams"),
        *stream_table(_serving(every, "chat")),
        *lines("## Replies of completions", "### Whole replies"),
        *reply_table(_serving(every, "completions"), "completions"),
        *lines("### Streams"),
        *stream_table(_serving(every, "completions"), "completions"),
        *lines("## Replies of embeddings"),
        *(reply_table(_serving(every, "embeddings"), "embeddings") or lines(_NOTHING)),
    ]
    return "\n".join(body).rstrip() + "\n"


def _serving(clients: list[Client], protocol: str) -> list[Client]:
    return [client for client in clients if protocol in client.dialect.served]


def _introduction(served: list[Client]) -> Iterator[str]:
    profiles = ", ".join(f"{client.dialect.name} {code(client.profile)}" for client in served)
    yield from lines(
        "The adapters compute these tables: for every field of every client's dialect, and for a few of the values "
        "that its schema allows, a request goes through the adapters to every provider's dialect. The response header "
        "`x-dragoman-changes` and the log list the losses of each request."
    )
    yield f"- Profiles of the clients, the default ones: {profiles}."
    yield (
        f"- Profile of the providers: `{PROVIDER_PROFILE}`, with a model named {code(MODEL)} and no other settings. "
        "Databricks accepts `n` if the kind of provider is `provisioned-throughput`, and `strict` in tools if the "
        "model is documented to take it."
    )
    yield f"- Default policies: {_policy(Policy())}."
    yield f"- Lenient policies: {_policy(LENIENT)}."
    hub = " and ".join(client.dialect.name for client in served if client.dialect.is_hub_form)
    yield f"- Extensions of the hub form are listed for {hub} clients, and for clients whose own dialect has them."
    yield "- Unknown keys of an azure client are refused unless it sends the header `extra-parameters`."
    yield ""


def _has_own_schema(client: Client, protocol: str) -> bool:
    """Whether the client's dialect has requests that are not another vendor's."""
    name = f"{client.dialect.name}/{protocol}.request"
    return protocol in client.dialect.served and find_base(name) is None


def _policy(policy: Policy) -> str:
    names = ("unsupported", "out_of_range", "extra_parameters")
    return ", ".join(code(f"{name}: {getattr(policy, name)}") for name in names)


def _requests(served: list[Client], dialects: Mapping[str, Dialect], protocol: str) -> Iterator[str]:
    asking = _serving(served, protocol)
    for provider in dialects.values():
        if protocol in provider.called:
            yield from lines(f"### To {provider.name} ({protocol})")
            yield from request_table(asking, provider, protocol)
        elif protocol in ("chat", "messages") and find_bridge(protocol, provider.called) is not None:
            yield from lines(f"### To {provider.name} ({protocol}, translated)", _TRANSLATED)
            yield from request_table(asking, provider, protocol)
        elif protocol == "completions" and "chat" in provider.called:
            yield from lines(f"### To {provider.name} ({protocol}, emulated with chat)", _EMULATED)
            yield from request_table(asking, provider, protocol)
