"""The application that typer makes of the commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Annotated

import typer

from dragoman import __version__

__all__ = ["NAMES", "make_app"]

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "version": (".version", ""),
    "serve": (
        ".serve",
        "dragoman serve --config dragoman.yaml --env-file .env. Without a file, providers come from"
        " OPENAI_API_KEY, DATABRICKS_HOST and DATABRICKS_TOKEN, AZURE_INFERENCE_ENDPOINT and"
        " AZURE_INFERENCE_CREDENTIAL, AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY, MINDIE_API_KEY,"
        " ANTHROPIC_API_KEY; the small model dragoman-mini is served as well.",
    ),
    "demo": (".demo", "dragoman demo --port 0"),
    "init": (".init", "dragoman init && dragoman check"),
    "check": (".configuration", "dragoman check dragoman.yaml --format github"),
    "schema": (".schema", "dragoman schema databricks/chat.request --profile actual"),
    "fake": (".fake", "dragoman fake mindie --port 9004 --behaviour rate-limit"),
    "chaos": (".chaos", "dragoman chaos 127.0.0.1:9004 --toxic 'latency(latency=300, jitter=100)'"),
    "translate": (".payload.commands", "dragoman translate --from openai/chat --to databricks/chat request.json"),
    "validate": (".payload.commands", "dragoman validate mindie/chat/request --profile actual request.json"),
    "explain": (".payload.commands", "dragoman explain --model fast request.json"),
    "call": (".payload.commands", 'dragoman call --model fast --message "Hello" --stream'),
    "usage": (".usage", "dragoman usage --by key,model --since 2027-01-01 --csv"),
    "learn": (".learning.learn_command", "dragoman learn https://api.example.com/v1 --api-key-env EXAMPLE_API_KEY"),
    "drift": (".learning.drift_command", "dragoman drift example.yaml --yes"),
    "chat": (".chat.command", "dragoman chat 'What is dragoman?'"),
    "export": (".export", "dragoman export Qwen3-0.6B models/qwen3 --precision int4"),
    "tail": (".tail.command", "dragoman tail -f dragoman.log --status 5xx --model 'fast*'"),
}
"""Command -> the module that has it, as a function of that name, and an example for its help."""

_GROUPS: Mapping[str, str] = {
    "keys": ".keys",
    "contract": "dragoman.contract.commands",
    "import": ".importing.commands",
}
"""Group of commands -> the module that has it, as `app`."""

NAMES = (*_GROUPS, *_COMMANDS)
"""All groups and commands. The help lists the commands first."""


def make_app(names: Iterable[str]) -> typer.Typer:
    """The command line with these commands and groups of commands."""
    made = typer.Typer(
        name="dragoman",
        help="A proxy that speaks the dialects of LLM clients and providers, and says what it changed.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DRAGOMAN"},
    )
    made.callback(
        epilog="First steps: dragoman init; dragoman check; dragoman serve. The help of a command names the environment"
        " variables that set its options."
    )(options)
    for name in names:
        if name in _GROUPS:
            made.add_typer(import_module(_GROUPS[name], __package__).app)
            continue
        module, example = _COMMANDS[name]
        epilog = f"Example: {example}" if example else None
        made.command(epilog=epilog)(getattr(import_module(module, __package__), name))
    return made


def _print_version(requested: bool) -> None:
    if requested:
        print(f"dragoman {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            allow_from_autoenv=False,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Options of dragoman itself."""
