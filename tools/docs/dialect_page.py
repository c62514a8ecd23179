"""The page of one dialect."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from dragoman.adapters.call import Call, Context, JsonObject, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.samples import load_sample
from dragoman.schemas import find_base, load, names

from .events import event_table
from .fields import Sources, schema_tables
from .markdown import HEAD, code, lines, table

__all__ = ["dialect_page"]

_SIDES = {
    "request": "Request",
    "reply": "Reply",
    "event": "Event of a stream",
    "error": "Error",
}
_LEAST: Mapping[str, JsonObject] = {
    "chat": {"messages": [{"role": "user", "content": "hello"}]},
    "responses": {"input": "hello"},
    "completions": {"prompt": "hello"},
    "embeddings": {"input": "hello"},
    "messages": {"max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]},
    "count_tokens": {"messages": [{"role": "user", "content": "hello"}]},
}
_INTRODUCTION = (
    "`[]` means each item of a list, `[role=user]` each item of this kind, `(type=function)` an object of this kind. "
    "The columns of other profiles show the differences from the `documented` one. A null value of an optional field "
    "of a request means that it is absent. The numbers of the last column refer to the sources at the end."
)


def dialect_page(dialect: Dialect) -> str:
    sources = Sources()
    body = [
        HEAD,
        "",
        *lines(f"# The {dialect.name} dialect"),
        *_profiles(dialect),
        *_served(dialect),
        *_called(dialect),
        *lines("## Fields", _INTRODUCTION),
        *_sides(dialect, sources),
        *_samples(dialect),
        *lines("## Sources"),
        *(f"{number}. {text}" for number, text in enumerate(sources.texts, 1)),
    ]
    return "\n".join(body).rstrip() + "\n"


def _profiles(dialect: Dialect) -> Iterator[str]:
    profiles, default = ", ".join(map(code, dialect.profiles)), code(dialect.served_profile)
    yield f"- Profiles: {profiles}." + (f" By default dragoman serves clients in {default}." if dialect.served else "")


def _served(dialect: Dialect) -> Iterator[str]:
    for protocol in dialect.served:
        yield f"- Addresses that dragoman serves ({protocol}): {_posts(dialect.paths[protocol])}."
        for form in dialect.address_forms.values():
            if protocol in form.paths:
                paths = _posts(form.paths[protocol], "&".join(f"{key.replace('_', '-')}=..." for key in form.settings))
                yield f"- The same for clients of {form.title} ({protocol}): {paths}."
    if dialect.choose_protocol is not None:
        yield "- An address with `{name}` serves every protocol of the dialect; the body decides which."


def _posts(paths: Iterable[str], query: str = "") -> str:
    return ", ".join(f"`POST {path}{query and '?'}{query}`" for path in paths)


def _called(dialect: Dialect) -> Iterator[str]:
    for protocol in dialect.called:
        address = _address(dialect, protocol)
        yield f"- Address that dragoman calls ({protocol}), appended to the provider's base address: {address}."
        for form in [name for name, form in dialect.address_forms.items() if protocol in form.paths]:
            yield f"- With `address: {form}` ({protocol}): {_address(dialect, protocol, form)}."
    for what, information in dialect.information.items():
        addresses = ", ".join(f"`GET {path}`" for path in information.paths)
        subject = "the server itself, without a key" if information.about == "none" else f"models ({what})"
        yield f"- Addresses with information on {subject}: {addresses}."
    if dialect.forwarded:
        yield f"- Headers of the provider that dragoman forwards to clients: {', '.join(map(code, dialect.forwarded))}."
    yield ""
    yield from lines("Ways to send a key to a provider:")
    yield from table(["`auth`", "Headers"], [_auth(dialect, word) for word in dialect.auth])


def _address(dialect: Dialect, protocol: str, form: str | None = None) -> str:
    request = {"model": "MODEL", **_LEAST[protocol]}
    ctx = Context("documented", Call("POST", "/", {}), Receipt(), _target(form), request)
    call = dialect.called[protocol].write_request(request, ctx)
    query = "&".join(f"{name}={value}" for name, value in call.query.items())
    return code(f"{call.method} {call.path}{'?' if query else ''}{query}")


def _target(form: str | None) -> Target:
    return Target("MODEL") if form is None else Target("MODEL", address=form, api_version="VERSION")


def _auth(dialect: Dialect, word: str) -> list[str]:
    default = " (default)" if word == next(iter(dialect.auth)) else ""
    headers = [code(f"{name}: {template.format('KEY')}") for name, template in dialect.auth[word].items()]
    return [code(word) + default, ", ".join(headers)]


def _sides(dialect: Dialect, sources: Sources) -> Iterator[str]:
    for name in _schema_names(dialect):
        protocol, _, which = name.partition("/")[2].partition(".")
        yield from lines(f"### {_SIDES[which]} ({protocol})")
        if (base := find_base(name)) is not None:
            yield from lines(_describe_base(dialect, *base))
            continue
        yield from schema_tables(name, sources)
        if which == "event":
            yield from event_table(load(name))


def _describe_base(dialect: Dialect, base: str, removed: list[str]) -> str:
    """As in `The same as chat.request of [openai](openai.md), without `user`.`"""
    owner, _, schema = base.partition("/")
    where = "" if owner == dialect.name else f" of [{owner}]({owner}.md)"
    without = f", without {', '.join(map(code, removed))}" if removed else ""
    return f"The same as {code(schema)}{where}{without}."


def _samples(dialect: Dialect) -> Iterator[str]:
    yield from lines("## Samples", "A request of each protocol, a reply to it, and an error.")
    for protocol in dict.fromkeys((*dialect.served, *dialect.called)):
        sample = load_sample(dialect.name, protocol)
        yield from lines(f"### {protocol}")
        for body in (sample["request"], sample["reply"], sample["error"]["body"]):
            yield from ("```json", json.dumps(body, indent=2, ensure_ascii=False), "```", "")


def _schema_names(dialect: Dialect) -> list[str]:
    own = [name for name in names() if name.startswith(f"{dialect.name}/")]
    return sorted(own, key=lambda name: (name.partition(".")[0], list(_SIDES).index(name.partition(".")[2])))
