"""The command line. Exit status: 0 success, 2 wrong usage or configuration, 130 interrupted.

The other modules of this folder contain the commands. A command imports what it needs when it runs, so that
`dragoman --help` is fast.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Annotated

import typer

from dragoman import __version__
from dragoman.contract.commands import app as contract

from .chaos import chaos
from .chat.command import chat
from .configuration import check
from .demo import demo
from .export import export
from .fake import fake
from .importing.commands import app as imports
from .init import init
from .keys import app as keys
from .learning.drift_command import drift
from .learning.learn_command import learn
from .payload.commands import register
from .schema import schema
from .serve import serve
from .tail.command import tail
from .usage import usage

__all__ = ["app", "main"]

app = typer.Typer(
    name="dragoman",
    help="A proxy that speaks the dialects of LLM clients and providers, and says what it changed.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DRAGOMAN"},
)


def main() -> None:
    """Run the command that `sys.argv` names, and exit with its status."""
    if sys.stderr is None:  # the parent process has closed it: nothing else may get its descriptor
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open until the end
    if os.environ.get("DRAGOMAN_PORT", "").startswith("tcp://"):
        del os.environ["DRAGOMAN_PORT"]  # Kubernetes sets it if a service is called dragoman
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # plugins would read the metadata of every package
    gc.set_threshold(50_000, 20, 100)  # imported modules stay in memory: collect garbage rarely
    app(prog_name="dragoman")


def _print_version(requested: bool) -> None:
    if requested:
        print(f"dragoman {__version__}")
        raise typer.Exit


@app.callback(
    epilog="First steps: dragoman init; dragoman check; dragoman serve. The help of a command names the environment"
    " variables that set its options."
)
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


@app.command()
def version() -> None:
    """Show the version."""
    print(f"dragoman {__version__}")


app.command(
    epilog="Example: dragoman serve --config dragoman.yaml --env-file .env. Without a file, providers come from"
    " OPENAI_API_KEY, DATABRICKS_HOST and DATABRICKS_TOKEN, AZURE_INFERENCE_ENDPOINT and AZURE_INFERENCE_CREDENTIAL,"
    " AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY, ANTHROPIC_API_KEY; the small model dragoman-mini is served as"
    " well."
)(serve)
app.command(epilog="Example: dragoman demo --port 0")(demo)
app.command(epilog="Example: dragoman init && dragoman check")(init)
app.command(epilog="Example: dragoman check dragoman.yaml --format github")(check)
app.command(epilog="Example: dragoman schema databricks/chat.request --profile actual")(schema)
app.command(epilog="Example: dragoman fake mindie --port 9004 --behaviour rate-limit")(fake)
app.command(epilog="Example: dragoman chaos 127.0.0.1:9004 --toxic 'latency(latency=300, jitter=100)'")(chaos)
register(app)
app.add_typer(keys)
app.command(epilog="Example: dragoman usage --by key,model --since 2027-01-01 --csv")(usage)
app.add_typer(contract)
app.command(epilog="Example: dragoman learn https://api.example.com/v1 --api-key-env EXAMPLE_API_KEY")(learn)
app.command(epilog="Example: dragoman drift example.yaml --yes")(drift)
app.command(epilog="Example: dragoman chat 'What is dragoman?'")(chat)
app.command(epilog="Example: dragoman export Qwen3-0.6B models/qwen3 --precision int4")(export)
app.command(epilog="Example: dragoman tail -f dragoman.log --status 5xx --model 'fast*'")(tail)
app.add_typer(imports)
