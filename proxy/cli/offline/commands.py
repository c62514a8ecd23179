"""The commands themselves: their options, and what they print. What they need is imported inside them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from dragoman.proxy.cli.options import (
    ConfigFile,
    EnvFile,
    Insecure,
    Profile,
    exit_on_config_errors,
    exit_with_error,
    load_configuration,
    print_problems,
    read_environment,
)

if TYPE_CHECKING:
    from dragoman.proxy.config.models import Config

    from .explain import Inquiry
    from .translate import Translated
    from .validate import Finding

__all__ = ["call", "explain", "register", "translate", "validate"]

Form: TypeAlias = Literal["text", "json"]
SideName: TypeAlias = Literal["request", "reply", "stream", "error"]

File = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="The payload. Default, and what - means: standard input.")
]
Texts: TypeAlias = list[str] | None
Headers = Annotated[
    Texts, typer.Option("--header", allow_from_autoenv=False, help='A header, "name: value". May be repeated.')
]
Query = Annotated[
    Texts,
    typer.Option("--query", allow_from_autoenv=False, help="A query parameter, name=value. May be repeated."),
]
Model = Annotated[str | None, typer.Option(help="The model to ask for, instead of the request's own.")]
Key = Annotated[str | None, typer.Option(help="Ask as the holder of the configured key with this name.")]
From = Annotated[str, typer.Option("--from", help="The client's dialect and protocol.")]
FormOption = Annotated[Form, typer.Option("--format", help="text for people, json for programs.")]
Message = Annotated[str | None, typer.Option(help="Ask with this one user message, prompt or input, without a FILE.")]


_MESSAGE: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "chat": lambda text: {"messages": [{"role": "user", "content": text}]},
    "responses": lambda text: {"input": text},
    "embeddings": lambda text: {"input": text},
    "completions": lambda text: {"prompt": text},
}
"""The least request that says a text, by protocol."""


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: dragoman translate --from openai/chat --to databricks/chat request.json")(translate)
    app.command(epilog="Example: dragoman validate mindie/chat/request --profile actual request.json")(validate)
    app.command(epilog="Example: dragoman explain --model fast request.json")(explain)
    app.command(epilog='Example: dragoman call --model fast --message "Hello" --stream')(call)


def translate(
    source: Annotated[str, typer.Option("--from", help="DIALECT/PROTOCOL that the payload is in.")],
    destination: Annotated[str, typer.Option("--to", help="DIALECT/PROTOCOL to translate it to.")],
    file: File = None,
    profile: Annotated[Profile | None, typer.Option(help="The profile of both dialects.")] = None,
    from_profile: Annotated[Profile | None, typer.Option(help="The profile of the payload's dialect.")] = None,
    to_profile: Annotated[Profile | None, typer.Option(help="The profile of the other dialect.")] = None,
    side: Annotated[SideName | None, typer.Option(help="What the payload is. Default: what it looks like.")] = None,
    policy: Annotated[
        Texts, typer.Option(allow_from_autoenv=False, help="As in the configuration: name=value. May be repeated.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The upstream's name for the model.")] = None,
    header: Headers = None,
    query: Query = None,
    path: Annotated[str | None, typer.Option(help="The path that the client asks. Default: the dialect's.")] = None,
    status: Annotated[int | None, typer.Option(min=100, max=599, help="The status of a reply or an error.")] = None,
    cut: Annotated[bool, typer.Option("--cut", help="The provider's connection broke after the payload.")] = False,
    request: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The client's request that the payload answers.")
    ] = None,
) -> None:
    """Translate a payload: a request to a provider's dialect; a reply, a stream or an error to a client's."""
    with _misuse_shown():
        from . import inputs
        from .misuse import Misuse
        from .screen import say
        from .speech import Asking, Speech
        from .translate import Task, guess
        from .translate import translate as translated

        data = inputs.payload(file)
        chosen = side or guess(data, status)
        if chosen == "request" and (cut or request is not None):
            raise Misuse("--cut and --request belong to what a provider answers, and the payload is a request")
        origin = Speech.parse("--from", source, from_profile or profile)
        goal = Speech.parse("--to", destination, to_profile or profile)
        client, provider = (origin, goal) if chosen == "request" else (goal, origin)
        asking = Asking(inputs.headers(header), inputs.query(query), path)
        sent = None if request is None else inputs.payload(request)
        task = Task(client, provider, model, inputs.policy(policy), asking, status, cut, sent)
        result = translated(chosen, data, task)
    if side is None:
        article = "an" if chosen == "error" else "a"
        say([("dim", f"note: the payload looks like {article} {chosen}; --side says otherwise")])
    _show_translated(result)


def validate(
    what: Annotated[str, typer.Argument(metavar="DIALECT/PROTOCOL/SIDE", help="Such as mindie/chat/request.")],
    file: File = None,
    profile: Annotated[Profile, typer.Option(help="The variant of the dialect.")] = "documented",
    form: FormOption = "text",
) -> None:
    """Judge a payload by a dialect's schema. SIDE is request, reply, event, error, or stream for all of its events."""
    with _misuse_shown():
        from . import inputs
        from .screen import put_json
        from .validate import Subject
        from .validate import validate as findings_of

        subject = Subject.parse(what, profile)
        found = findings_of(inputs.payload(file), subject)
    if form == "json":
        shown = [finding.public() for finding in found]
        put_json({"valid": not found, "schema": subject.schema, "profile": profile, "violations": shown})
    else:
        _show_findings(found)
    raise typer.Exit(1 if found else 0)


def explain(
    file: File = None,
    config: ConfigFile = None,
    model: Model = None,
    source: From = "openai/chat",
    key: Key = None,
    header: Headers = None,
    query: Query = None,
    message: Message = None,
    form: FormOption = "text",
    insecure: Insecure = False,
    env_file: EnvFile = None,
) -> None:
    """Show where a request would go and what would be sent there. Nothing is sent."""
    import asyncio

    loaded = _loaded(config, env_file, insecure)
    with _misuse_shown():
        from .explain import explain as planned
        from .plans import plan_json, plan_lines
        from .screen import put_json, say

        inquiry = _inquiry(source, file, message, model, key, header, query)
        plan = asyncio.run(planned(loaded, inquiry))
    if form == "json":
        put_json(plan_json(plan, loaded))
    else:
        say(plan_lines(plan, loaded), sys.stdout)
    raise typer.Exit(0 if plan.fault is None else 1)


def call(
    file: File = None,
    config: ConfigFile = None,
    model: Model = None,
    source: From = "openai/chat",
    key: Key = None,
    header: Headers = None,
    query: Query = None,
    message: Message = None,
    stream: Annotated[bool, typer.Option("--stream", help="Ask for a stream.")] = False,
    insecure: Insecure = False,
    env_file: EnvFile = None,
) -> None:
    """Send a request through the whole proxy, and show both sides. Exit status: 1 client's fault, 3 provider's."""
    import asyncio

    loaded = _loaded(config, env_file, insecure)
    with _misuse_shown():
        from dragoman.proxy.server.lifecycle import CannotServe

        from .call import call as called

        inquiry = _inquiry(source, file, message, model, key, header, query, stream)
        try:
            code = asyncio.run(called(loaded, inquiry))
        except CannotServe as error:
            exit_with_error(str(error))
    raise typer.Exit(code)


def _inquiry(
    source: str,
    file: Path | None,
    message: str | None,
    model: str | None,
    key: str | None,
    header: Texts,
    query: Texts,
    stream: bool = False,
) -> Inquiry:
    import json

    from . import inputs
    from .explain import Inquiry
    from .misuse import Misuse
    from .speech import Asking, Speech

    if message is not None and file is not None:
        raise Misuse("both FILE and --message are given; one of them is the request")
    speech = Speech.parse("--from", source)
    asking = Asking(inputs.headers(header), inputs.query(query))
    data = inputs.payload(file) if message is None else json.dumps(_MESSAGE[speech.protocol](message)).encode()
    return Inquiry(speech, data, model, key, asking, stream)


def _loaded(file: Path | None, env_file: Path | None, insecure: bool) -> Config:
    with exit_on_config_errors():
        checked = load_configuration(file, read_environment(env_file), insecure)
    print_problems(checked.warnings)
    return checked.config


def _show_translated(result: Translated) -> None:
    """The payload on standard output, everything else on standard error. A fault is status 1."""
    from .screen import put, put_json, say
    from .texts import call_lines, change_lines, fault_lines, head_lines, several, told_lines

    if result.call is not None:
        query = "&".join(f"{name}={value}" for name, value in result.call.query.items())
        address = f"{result.call.path}?{query}" if query else result.call.path
        if result.calls > 1:
            say([("bold", several(result.calls))])
        say(call_lines(result.call.method, address, result.call.headers))
        put_json(result.call.body)
    elif result.stream is not None:
        put(result.stream)
    elif result.reply is not None and result.fault is None:
        say(head_lines(result.reply.status, result.reply.headers))
        put_json(result.reply.body)
    if result.understood_as is not None:
        say(told_lines(result.understood_as))
    elif result.fault is None or result.receipt.changes:
        say(change_lines(result.receipt.changes))
    if result.broken_off:
        say([("", "after this the connection is broken off")])
    if result.fault is not None:
        say(fault_lines(result.fault, result.reply))
        raise typer.Exit(1)


def _show_findings(found: list[Finding]) -> None:
    from .screen import say
    from .texts import finding_lines

    say([("green", "valid")] if not found else finding_lines(found), sys.stdout)


@contextmanager
def _misuse_shown() -> Iterator[None]:
    """End the program with status 2 where it is used wrongly."""
    from .misuse import Misuse

    try:
        yield
    except Misuse as error:
        exit_with_error(str(error))
