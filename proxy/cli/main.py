"""The command line. Exit status: 0 all right, 2 wrong usage or configuration, 130 interrupted.

What a command needs is imported inside it, so that `dragoman --help` is quick.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman import __version__
from dragoman.adapters.registry import NAMES
from dragoman.contract.commands import app as contract

from .chat.command import chat
from .export import export
from .importing.commands import app as imports
from .offline.commands import register
from .options import (
    DEFAULT_FILE,
    ConfigFile,
    EnvFile,
    Format,
    Insecure,
    Profile,
    configuration,
    count,
    environment,
    fail,
    problems_shown,
    report,
)

__all__ = ["app", "main"]

app = typer.Typer(
    name="dragoman",
    help="A proxy that speaks the dialects of LLM clients and providers, and says what it changed.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DRAGOMAN"},
)


def main() -> None:
    if os.environ.get("DRAGOMAN_PORT", "").startswith("tcp://"):
        del os.environ["DRAGOMAN_PORT"]  # Kubernetes sets it so where a service is called dragoman
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would read the metadata of every package here
    gc.set_threshold(50_000, 20, 100)  # what is imported stays, so it is seldom worth while to look for garbage in it
    app(prog_name="dragoman")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"dragoman {__version__}")
        raise typer.Exit


@app.callback(
    epilog="First steps: dragoman init; dragoman check; dragoman serve. Every option can be set in the environment."
)
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            allow_from_autoenv=False,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Options of dragoman itself."""


@app.command(
    epilog="Example: dragoman serve --config dragoman.yaml --env-file .env. Without a file, providers come from"
    " OPENAI_API_KEY, DATABRICKS_HOST and DATABRICKS_TOKEN, AZURE_INFERENCE_ENDPOINT and AZURE_INFERENCE_CREDENTIAL,"
    " AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY; the small model dragoman-mini answers beside them."
)
def serve(
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option(envvar="DRAGOMAN_HOST", help="Instead of server.host.")] = None,
    port: Annotated[
        int | None, typer.Option(envvar="DRAGOMAN_PORT", min=0, max=65535, help="Instead of server.port.")
    ] = None,
    insecure: Insecure = False,
    env_file: EnvFile = None,
    log_format: Annotated[
        Literal["json", "console"] | None,
        typer.Option(envvar="DRAGOMAN_LOG_FORMAT", help="Default: console on a terminal, json elsewhere."),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        typer.Option(envvar="DRAGOMAN_LOG_LEVEL", help="What to log."),
    ] = "info",
) -> None:
    """Serve the configured models."""
    with problems_shown():
        checked = configuration(config, environment(env_file), insecure)
    report(checked.warnings)
    from dragoman.proxy.server.lifecycle import run

    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    server = checked.config.server.model_copy(update=given)
    form = log_format or ("console" if sys.stderr.isatty() else "json")
    ready = checked.config.model_copy(update={"server": server})
    raise typer.Exit(run(ready, insecure=insecure, log_format=form, log_level=log_level))


@app.command(epilog="Example: dragoman init && dragoman check")
def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = DEFAULT_FILE,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a commented configuration file to begin with."""
    from dragoman.proxy.config.starter import STARTER

    try:
        with file.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(STARTER)
    except FileExistsError:
        fail(f"{file} exists; --force overwrites it")
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")
    print(f"{file} is written. Set OPENAI_API_KEY, or edit the file; then: dragoman check {file}")


@app.command(epilog="Example: dragoman check dragoman.yaml --format github")
def check(
    file: Annotated[Path, typer.Argument(envvar="DRAGOMAN_CONFIG", help="The file to check.")] = DEFAULT_FILE,
    form: Annotated[
        Format, typer.Option("--format", envvar="DRAGOMAN_FORMAT", help="text, json, or GitHub's annotations.")
    ] = "text",
    insecure: Insecure = False,
    env_file: EnvFile = None,
) -> None:
    """Say everything that is wrong with a configuration file. Warnings alone are no failure."""
    from dragoman.proxy.config.load import check as check_file

    with problems_shown(form):
        checked = check_file(file, environment(env_file), insecure=insecure)
    report(checked.warnings, form)
    if form == "text":
        config = checked.config
        print(f"{file}: {count(len(config.providers), 'provider')}, {count(len(config.models), 'model')}, no errors")


@app.command(epilog="Example: dragoman schema databricks/chat.request --profile actual")
def schema(
    name: Annotated[
        str | None, typer.Argument(help="config, or <dialect>/<protocol>.<side> such as mindie/chat.reply.")
    ] = None,
    profile: Annotated[
        Profile, typer.Option(help="The variant of the dialect; without a file of its own it is the documented one.")
    ] = "documented",
    show_list: Annotated[bool, typer.Option("--list", allow_from_autoenv=False, help="List the names.")] = False,
) -> None:
    """Print a JSON Schema: of the configuration file, or of what a dialect's requests and replies look like."""
    from dragoman.schemas import SchemaNotFound, load, names

    if show_list:
        print("\n".join(("config", *names())))
        return
    if name is None:
        fail("name a schema; `dragoman schema --list` lists them")
    try:
        found = load(name, profile)
    except SchemaNotFound:
        from dragoman.proxy.config.document import did_you_mean

        fail(f'there is no schema "{name}" {did_you_mean(name, ("config", *names()))}'.strip())
    import json

    print(json.dumps(found, indent=2, ensure_ascii=False))


@app.command(epilog="Example: dragoman fake mindie --port 9004 --behaviour rate-limit")
def fake(
    dialect: Annotated[str | None, typer.Argument(help=f"One of: {', '.join(NAMES)}.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    behaviour: Annotated[str, typer.Option(help="What it does where a request does not say.")] = "as-asked",
    api_key: Annotated[str | None, typer.Option(help="The key to ask for. Default: none.")] = None,
    profile: Annotated[Profile, typer.Option(help="The variant of the dialect.")] = "actual",
    show_list: Annotated[bool, typer.Option("--list", allow_from_autoenv=False, help="List the behaviours.")] = False,
    replay: Annotated[Path | None, typer.Option(help="Play the recordings of this folder instead.")] = None,
) -> None:
    """Run a fake provider on this machine, to try things out with."""
    from dragoman.contract import fakes

    if show_list:
        print(fakes.listing())
        return
    if dialect is None and replay is None:
        fail(f"name a dialect ({', '.join(NAMES)}), or recordings (--replay FOLDER)")
    try:
        if replay is not None:
            fakes.run(fakes.ReplayProvider(replay, port=port), fakes.ReplayProvider.introduction)
            return
        assert dialect is not None
        provider = fakes.FakeProvider(dialect, port=port, behaviour=behaviour, api_key=api_key, profile=profile)
        fakes.run(provider, fakes.introduction)
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot listen on port {port}: {error.strerror}")


@app.command()
def version() -> None:
    """Show the version."""
    print(f"dragoman {__version__}")


register(app)
app.add_typer(contract)
app.command(epilog="Example: dragoman chat 'What is dragoman?'")(chat)
app.command(epilog="Example: dragoman export Qwen3-0.6B models/qwen3 --precision int4")(export)
app.add_typer(imports)
