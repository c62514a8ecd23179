"""The command `learn`: it asks an endpoint what it is, and writes its provider entry."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer
from typer import Option

from dragoman.contract.option_groups import expand_groups
from dragoman.contract.options import DialectName
from dragoman.proxy.cli.options import exit_on_config_errors, exit_with_error, read_environment
from dragoman.proxy.cli.terminal import remove_controls

from .options import AskOptions

if TYPE_CHECKING:
    from dragoman.contract.learning.findings import Findings

__all__ = ["learn", "name_provider"]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_COMMON_PARTS = ("api", "www", "com", "org", "net", "io", "ai", "openai", "v1")


@dataclass(frozen=True)
class EndpointOptions:
    """The endpoint to learn."""

    url: Annotated[str, typer.Argument(help="An address of the endpoint, with or without /v1.")]
    model: Annotated[str, Option(help="The model to ask. Default: the first one that the endpoint lists.")] = ""
    dialect: Annotated[DialectName | None, Option(help="The dialect. Default: the one that fits best.")] = None
    api_key_env: Annotated[
        str | None, Option(help="The environment variable with the key. The entry names it, and never has the key.")
    ] = None
    header: Annotated[
        list[str] | None, Option(help='A further header, "name: value"; ${NAME} is a variable. Repeatable.')
    ] = None


@dataclass(frozen=True)
class OutputOptions:
    """Where to write the entry."""

    output: Annotated[
        Path | None, Option("--output", "-o", help="The file to write; - is standard output. Default: NAME.yaml.")
    ] = None
    name: Annotated[str, Option(help="The provider's name. Default: from the address.")] = ""


@expand_groups
def learn(endpoint: EndpointOptions, output: OutputOptions, ask: AskOptions) -> None:
    """Ask an endpoint what it is, and write its provider entry. It has dialect, protocols, what it lacks, and why."""
    from dragoman.contract.learning.entry import EntryNames, render_entry

    from .files import check_output, write_atomically
    from .session import Question, ask_endpoint, exit_on_interruption, read_key

    url = _check_url(endpoint.url)
    name = output.name or name_provider(url)
    file = output.output or Path(f"{name}.yaml")
    for one in (file, ask.json_file):
        if one is not None and not ask.dry_run:
            check_output(one, overwrite=ask.force)
    headers = _parse_headers(endpoint.header or [])
    with exit_on_config_errors():
        env = read_environment(None, file, must_exist=False)
    sent = {key: _fill_variables(value, env) for key, value in headers.items()}
    question = Question(url, endpoint.dialect or "", endpoint.model, read_key(endpoint.api_key_env, env), sent)
    findings = ask_endpoint(question, ask)
    text = render_entry(findings, EntryNames(name, endpoint.api_key_env or "", headers), _describe_command())
    if ask.json_file is not None:
        write_atomically(ask.json_file, json.dumps(findings.to_json(), indent=1) + "\n", overwrite=ask.force)
    write_atomically(file, text, overwrite=ask.force)
    _report(findings, text, file, env, insecure=ask.insecure)
    exit_on_interruption(findings)


def _check_url(url: str) -> str:
    """Exits with status 2 if this is no address, or has a password or a query, which may be a key."""
    whole = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(whole)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        exit_with_error(f"{url}: {error}")
    if parts.scheme not in ("http", "https") or not host:
        exit_with_error(f"{url} is no address; write it as https://api.example.com/v1")
    if "@" in parts.netloc:
        exit_with_error("the address has a password; name a variable with the key instead (--api-key-env)")
    if parts.query:
        exit_with_error("leave out the query of the address: it would not be sent, and the entry shows this command")
    return whole


def name_provider(url: str) -> str:
    """Make a name for the provider at an address: `groq` for api.groq.com, `local` for this machine."""
    host = urlsplit(url).hostname or ""
    parts = [part for part in host.split(".") if part not in _COMMON_PARTS]
    if host in ("localhost", "::1") or not parts or all(part.isdigit() for part in host.split(".")):
        return "local" if host in ("localhost", "::1") or host.startswith("127.") else "learned"
    return re.sub(r"[^A-Za-z0-9-]", "-", parts[0])[:64].strip("-") or "learned"


def _parse_headers(texts: Sequence[str]) -> dict[str, str]:
    """Parse headers as they go into the entry. Exits with status 2 if one is malformed, or has a literal secret."""
    from dragoman.contract.masks import MASKED, Mask

    headers: dict[str, str] = {}
    for text in texts:
        name, colon, value = text.partition(":")
        headers[name.strip()] = value.strip()
        if not colon or not name.strip():
            exit_with_error(f'--header takes "name: value", not {name!r}')
        if Mask().mask_headers({name.strip(): ""})[name.strip()] == MASKED and "${" not in value:
            exit_with_error(f"--header {name.strip()}: write the secret as ${{NAME}}, the name of a variable")
    return headers


def _fill_variables(text: str, env: Mapping[str, str]) -> str:
    """Exits with status 2 if a variable is not set."""

    def read(found: re.Match[str]) -> str:
        if found[1] not in env:
            exit_with_error(f"the environment variable {found[1]} is not set")
        return env[found[1]]

    return _VARIABLE.sub(read, text)


def _describe_command() -> str:
    """The command as it was given; options name variables, never secrets."""
    return "dragoman " + shlex.join(sys.argv[1:])


def _report(findings: Findings, text: str, file: Path, env: Mapping[str, str], *, insecure: bool) -> None:
    """Check the entry as `dragoman check` does, and say what to do next."""
    from dragoman.proxy.cli.options import print_problems
    from dragoman.proxy.config.load import check_text
    from dragoman.proxy.config.problems import ConfigErrors

    try:
        print_problems(check_text(text, str(file), env, insecure=insecure).warnings)
    except ConfigErrors as errors:
        print_problems(errors.problems)
    if findings.interrupted:
        print(f"not complete: {remove_controls(findings.interrupted)}", file=sys.stderr)
    if str(file) != "-":
        known = f"{len(findings.protocols)} protocols, {len(findings.unknown)} things not known"
        print(f"wrote {file} ({findings.requests} requests, {known}); now run: dragoman check {file}", file=sys.stderr)
