"""The commands about the configuration file: `init` writes one, `check` explains what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import (
    DEFAULT_FILE,
    EnvFile,
    Format,
    Insecure,
    exit_on_config_errors,
    format_count,
    print_problems,
    read_environment,
    write_new_file,
)

__all__ = ["check", "init"]


def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = DEFAULT_FILE,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a commented configuration file to begin with."""
    from dragoman.proxy.config.starter import STARTER

    write_new_file(file, STARTER, force)
    print(f"wrote {file}. Set OPENAI_API_KEY, or edit the file; then run: dragoman check {file}")


def check(
    file: Annotated[Path, typer.Argument(envvar="DRAGOMAN_CONFIG", help="The file to check.")] = DEFAULT_FILE,
    form: Annotated[
        Format, typer.Option("--format", envvar="DRAGOMAN_FORMAT", help="text, json, or GitHub's annotations.")
    ] = "text",
    insecure: Insecure = False,
    env_file: EnvFile = None,
) -> None:
    """List everything that is wrong with a configuration file. Warnings alone do not fail the check."""
    from dragoman.proxy.config.load import check as check_file

    with exit_on_config_errors(form):
        checked = check_file(file, read_environment(env_file, file), insecure=insecure)
    print_problems(checked.warnings, form)
    if form == "text":
        providers = format_count(len(checked.config.providers), "provider")
        print(f"{file}: {providers}, {format_count(len(checked.config.models), 'model')}, no errors")
