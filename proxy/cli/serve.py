"""The command `serve`: its options, and the configuration that results from them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .configuration_source import ConfigurationSource
from .options import DEFAULT_FILE, ConfigFile, EnvFile, Insecure, exit_on_config_errors, print_problems
from .serve_apart import import_server

if TYPE_CHECKING:
    from dragoman.proxy.config.problems import Problem

__all__ = ["serve"]


def serve(
    context: typer.Context,
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
        typer.Option(envvar="DRAGOMAN_LOG_LEVEL", help="The lowest level to log."),
    ] = "info",
) -> None:
    """Serve the configured models."""
    file = config or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    source = ConfigurationSource(file, env_file, insecure, host, port)
    with exit_on_config_errors():
        checked = source.read(_print_warnings)
    _print_warnings(checked.warnings)
    arguments = {
        "config": checked.config,
        "insecure": insecure,
        "log_format": log_format or ("console" if sys.stderr.isatty() else "json"),
        "log_level": log_level,
        "source": None if file is None else source.read_again,
        "files": checked.files,
        "text": checked.text,
    }
    if context.obj is not None:  # another process serves
        context.obj(arguments)
        return
    raise typer.Exit(import_server()(**arguments))


def _print_warnings(problems: Sequence[Problem]) -> None:
    """Print problems that are no errors. The proxy serves even if nothing can be printed, as on a full disk."""
    with suppress(OSError):
        print_problems(problems)
