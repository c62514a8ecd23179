"""The page that says what gets lost between which dialects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dragoman.adapters.call import Policy
from dragoman.adapters.dialect import Dialect

from .markdown import HEAD, code, lines, table
from .reply_losses import reply_table, stream_table
from .request_losses import ABSENT, request_table
from .trials import CARRIED, LENIENT, MODEL, PROVIDER_PROFILE, Client

__all__ = ["losses_page"]

_LEGEND = {
    CARRIED: "arrives as the client wrote it",
    "as `name`": "arrives under that name",
    "converted": "arrives in another form, with the same meaning",
    "moved": "arrives at another place in the conversation",
    "not needed": "left out, which means the same",
    "converted, less exact": "arrives in a form that says less; recorded as a loss",
    "nearest value": "arrives as the nearest value that the provider takes; recorded as a loss",
    "lost": "left out and recorded as a loss: it only advises, or is a key that nobody knows",
    "refused (lost)": "refused by default; left out, and recorded as a loss, with the lenient policies",
    "refused (nearest value)": "refused by default; the nearest value with the lenient policies",
    "refused": "refused, whatever the policies",
    ABSENT: "the client's dialect does not have it",
}
_REPLY_LEGEND = {
    CARRIED: "the client finds it where the hub has it",
    "as `name`": "the client finds it there",
    "inside `name`": "the client finds it there, together with other text",
    "lost": "left out and recorded as a loss",
    "left out": "left out, without a record",
    "a value": "what the client finds instead",
}


_NOTHING = "Nothing is lost: what was asked about is carried to every client."
_EMULATED = "With the policy `emulate_completions`. The prompt becomes a message, always recorded as a loss."


def losses_page(dialects: Mapping[str, Dialect]) -> str:
    served = [Client(dialect, dialect.served_profile) for dialect in dialects.values() if dialect.served]
    every = [Client(client.dialect, profile) for client in served for profile in client.dialect.profiles]
    body = [
        HEAD,
        "",
        *lines("# What gets lost"),
        *_introduction(served),
        *lines("## Requests", "What is not listed is carried from every client's dialect that has it."),
        *table(["Word", "Meaning"], _LEGEND.items()),
        *_requests(served, dialects, "chat"),
        *_requests(served, dialects, "completions"),
        *_requests(served, dialects, "embeddings"),
        *lines(
            "## Replies of chat",
            "The same for what comes back: from the hub, into which every provider's reply is read.",
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
        "This table is computed: every field of every client's dialect is put into a request, with a few of the "
        "values that its schema allows, and goes through the adapters to every provider's dialect. What a request "
        "loses stands in the response header `x-dragoman-changes` and in the log."
    )
    yield f"- Clients are served in their default profiles: {profiles}."
    yield (
        f"- Providers are called in `{PROVIDER_PROFILE}`, the model being called {code(MODEL)}, without other "
        "settings. Databricks takes `n` where the kind of provider is `provisioned-throughput`, and `strict` in tools "
        "for models with `gpt` in their name."
    )
    yield f"- Default policies: {_policy(Policy())}."
    yield f"- Lenient policies: {_policy(LENIENT)}."
    hub = " and ".join(client.dialect.name for client in served if client.dialect.is_hub_form)
    yield f"- The hub's extensions are listed for {hub} clients, and for others that have them in their own dialect."
    yield "- An azure client's unknown keys are refused unless it sends the header `extra-parameters`."
    yield ""


def _policy(policy: Policy) -> str:
    names = ("unsupported", "out_of_range", "extra_parameters")
    return ", ".join(code(f"{name}: {getattr(policy, name)}") for name in names)


def _requests(served: list[Client], dialects: Mapping[str, Dialect], protocol: str) -> Iterator[str]:
    asking = _serving(served, protocol)
    for provider in dialects.values():
        if protocol in provider.called:
            yield from lines(f"### To {provider.name} ({protocol})")
            yield from request_table(asking, provider, protocol)
        elif protocol == "completions":
            yield from lines(f"### To {provider.name} ({protocol}, for which chat stands in)", _EMULATED)
            yield from request_table(asking, provider, protocol)
