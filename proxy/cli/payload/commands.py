"""The commands `translate`, `validate`, `explain` and `call`: their options, and what they print.

A command imports what it needs when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from dragoman.proxy.cli.completion import complete_client_format, complete_format, complete_payload_type
from dragoman.proxy.cli.options import (
    ConfigFile,
    EnvFile,
    Insecure,
    exit_on_config_errors,
    exit_with_error,
    load_configuration,
    print_problems,
    read_environment,
)
from dragoman.proxy.cli.profile_option import Profile

if TYPE_CHECKING:
    from dragoman.proxy.config.models import Config

    from .client_request import ClientRequest
    from .translate import Translation
    from .validate import Finding

__all__ = ["call", "explain", "translate", "validate"]

Form: TypeAlias = Literal["text", "json"]
SideName: TypeAlias = Literal["request", "reply", "stream", "error"]

File = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="The payload. Default, or if it is -: standard input.")
]
Texts: TypeAlias = list[str] | None
Headers = Annotated[
    Texts,
    typer.Option(
        "--header", metavar="NAME:VALUE", allow_from_autoenv=False, help='A header, "name: value". May be repeated.'
    ),
]
Query = Annotated[
    Texts,
    typer.Option(
        "--query",
        metavar="NAME=VALUE",
        allow_from_autoenv=False,
        help="A query parameter, name=value. May be repeated.",
    ),
]
Model = Annotated[str | None, typer.Option(help="The model to request, instead of the request's own.")]
Key = Annotated[str | None, typer.Option(help="The name of a configured key, to send the request with.")]
From = Annotated[
    str, typer.Option("--from", help="The client's dialect and protocol.", autocompletion=complete_client_format)
]
FormOption = Annotated[Form, typer.Option("--format", help="text for people, json for programs.")]
Message = Annotated[str | None, typer.Option(help="A user message, prompt or input, instead of a FILE.")]


_REQUESTS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "chat": lambda text: {"messages": [{"role": "user", "content": text}]},
    "responses": lambda text: {"input": text},
    "embeddings": lambda text: {"input": text},
    "completions": lambda text: {"prompt": text},
    "messages": lambda text: {"max_tokens": 1024, "messages": [{"role": "user", "content": text}]},
    "count_tokens": lambda text: {"messages": [{"role": "user", "content": text}]},
}
"""The smallest request with a text, by protocol."""


def translate(
    source: Annotated[
        str, typer.Option("--from", help="DIALECT/PROTOCOL that the payload is in.", autocompletion=complete_format)
    ],
    destination: Annotated[
        str, typer.Option("--to", help="DIALECT/PROTOCOL to translate it to.", autocompletion=complete_format)
    ],
    file: File = None,
    profile: Annotated[Profile | None, typer.Option(help="The profile of both dialects.")] = None,
    from_profile: Annotated[Profile | None, typer.Option(help="The profile of the payload's dialect.")] = None,
    to_profile: Annotated[Profile | None, typer.Option(help="The profile of the other dialect.")] = None,
    side: Annotated[SideName | None, typer.Option(help="The kind of payload. Default: what it looks like.")] = None,
    policy: Annotated[
        Texts,
        typer.Option(
            metavar="NAME=VALUE", allow_from_autoenv=False, help="As in the configuration: name=value. May be repeated."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The upstream's name for the model.")] = None,
    header: Headers = None,
    query: Query = None,
    path: Annotated[str | None, typer.Option(help="The path that the client requests. Default: the dialect's.")] = None,
    status: Annotated[int | None, typer.Option(min=100, max=599, help="The status of a reply or an error.")] = None,
    cut: Annotated[bool, typer.Option("--cut", help="The provider's connection broke after the payload.")] = False,
    request: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The client's request that the payload answers.")
    ] = None,
) -> None:
    """Translate a payload from one dialect to another. A request is translated to a provider's; a reply, a stream or an
    error to a client's."""
    with _exit_on_usage_error():
        from . import inputs
        from .client_request import RequestHead
        from .output import print_lines
        from .translate import TranslationTask, guess_side
        from .translate import translate as translate_payload
        from .usage_error import UsageError
        from .wire_format import WireFormat

        data = inputs.read_payload(file)
        actual_side = side or guess_side(data, status)
        if actual_side == "request" and (cut or request is not None):
            raise UsageError("--cut and --request belong to what a provider answers, and the payload is a request")
        origin = WireFormat.parse("--from", source, from_profile or profile)
        goal = WireFormat.parse("--to", destination, to_profile or profile)
        client, provider = (origin, goal) if actual_side == "request" else (goal, origin)
        head = RequestHead(inputs.parse_headers(header), inputs.parse_query(query), path)
        sent = None if request is None else inputs.read_payload(request)
        task = TranslationTask(client, provider, model, inputs.parse_policy(policy), head, status, cut, sent)
        translation = translate_payload(actual_side, data, task)
    if side is None:
        article = "an" if actual_side == "error" else "a"
        text = f"note: the payload looks like {article} {actual_side}; if it is something else, set --side"
        print_lines([("dim", text)])
    _print_translation(translation)


def validate(
    what: Annotated[
        str,
        typer.Argument(
            metavar="DIALECT/PROTOCOL/SIDE", help="Such as mindie/chat/request.", autocompletion=complete_payload_type
        ),
    ],
    file: File = None,
    profile: Annotated[Profile, typer.Option(help="The profile of the dialect.")] = "documented",
    form: FormOption = "text",
) -> None:
    """Validate a payload against a dialect's schema. SIDE is request, reply, event, error, or stream (all its
    events)."""
    with _exit_on_usage_error():
        from . import inputs
        from .output import print_json
        from .validate import PayloadType
        from .validate import validate as validate_payload

        payload_type = PayloadType.parse(what, profile)
        findings = validate_payload(inputs.read_payload(file), payload_type)
    if form == "json":
        violations = [finding.to_json() for finding in findings]
        print_json({"valid": not findings, "schema": payload_type.schema, "profile": profile, "violations": violations})
    else:
        _print_findings(findings)
    raise typer.Exit(1 if findings else 0)


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

    loaded = _load_config(config, env_file, insecure)
    with _exit_on_usage_error():
        from .explain import explain as plan_request
        from .output import print_json, print_lines
        from .plan_formatting import format_plan, plan_to_json

        request = _create_request(source, file, message, model, key, header, query)
        plan = asyncio.run(plan_request(loaded, request))
    if form == "json":
        print_json(plan_to_json(plan, loaded))
    else:
        print_lines(format_plan(plan, loaded), sys.stdout)
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
    raw: Annotated[bool, typer.Option("--raw", help="Also show what the provider answered, as it came.")] = False,
    insecure: Insecure = False,
    env_file: EnvFile = None,
) -> None:
    """Send a request through the whole proxy, and show both sides. Exit status: 1 client's fault, 3 provider's."""
    import asyncio

    loaded = _load_config(config, env_file, insecure)
    with _exit_on_usage_error():
        from dragoman.proxy.server.lifecycle import StartError

        from .call import call as call_proxy

        request = _create_request(source, file, message, model, key, header, query, stream)
        try:
            code = asyncio.run(call_proxy(loaded, request, raw=raw))
        except StartError as error:
            exit_with_error(str(error))
    raise typer.Exit(code)


def _create_request(
    source: str,
    file: Path | None,
    message: str | None,
    model: str | None,
    key: str | None,
    header: Texts,
    query: Texts,
    stream: bool = False,
) -> ClientRequest:
    import json

    from . import inputs
    from .client_request import ClientRequest, RequestHead
    from .usage_error import UsageError
    from .wire_format import WireFormat

    if message is not None and file is not None:
        raise UsageError("both FILE and --message are given; leave one of them out")
    wire_format = WireFormat.parse("--from", source)
    wire_format.require_client()
    head = RequestHead(inputs.parse_headers(header), inputs.parse_query(query))
    if message is None:
        data = inputs.read_payload(file)
    else:
        data = json.dumps(_REQUESTS[wire_format.protocol](message)).encode()
    return ClientRequest(wire_format, data, model, key, head, stream)


def _load_config(file: Path | None, env_file: Path | None, insecure: bool) -> Config:
    with exit_on_config_errors():
        checked = load_configuration(file, read_environment(env_file, file), insecure)
    print_problems(checked.warnings)
    return checked.config


def _print_translation(result: Translation) -> None:
    """Print the payload to standard output, everything else to standard error. Exits with status 1 if there is a
    fault."""
    from .formatting import (
        format_call_count,
        format_changes,
        format_fault,
        format_request_head,
        format_response_head,
        format_upstream_fault,
    )
    from .output import print_json, print_lines, write_bytes

    if result.call is not None:
        query = "&".join(f"{name}={value}" for name, value in result.call.query.items())
        address = f"{result.call.path}?{query}" if query else result.call.path
        if result.call_count > 1:
            print_lines([("bold", format_call_count(result.call_count))])
        print_lines(format_request_head(result.call.method, address, result.call.headers))
        print_json(result.call.body)
    elif result.stream is not None:
        write_bytes(result.stream)
    elif result.reply is not None and result.fault is None:
        print_lines(format_response_head(result.reply.status, result.reply.headers))
        print_json(result.reply.body)
    if result.upstream_fault is not None:
        print_lines(format_upstream_fault(result.upstream_fault))
    elif result.fault is None or result.receipt.changes:
        print_lines(format_changes(result.receipt.changes))
    if result.breaks_connection:
        print_lines([("", "then the proxy breaks the client's connection")])
    if result.fault is not None:
        print_lines(format_fault(result.fault, result.reply))
        raise typer.Exit(1)


def _print_findings(findings: list[Finding]) -> None:
    from .formatting import format_findings
    from .output import print_lines

    print_lines([("green", "valid")] if not findings else format_findings(findings), sys.stdout)


@contextmanager
def _exit_on_usage_error() -> Iterator[None]:
    """If the body raises UsageError: print the error, and exit with status 2."""
    from .usage_error import UsageError

    try:
        yield
    except UsageError as error:
        exit_with_error(str(error))
