"""Options that several commands share, the configuration that they load, and how they report errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn, TypeAlias

import typer

from .configuration_source import Report
from .terminal import remove_controls

if TYPE_CHECKING:
    from dragoman.proxy.config.checked_config import CheckedConfig
    from dragoman.proxy.config.problems import Problem

__all__ = [
    "DEFAULT_FILE",
    "ConfigFile",
    "EnvFile",
    "Format",
    "Insecure",
    "exit_on_config_errors",
    "exit_with_error",
    "format_count",
    "load_configuration",
    "print_problems",
    "read_environment",
    "write_new_file",
]

DEFAULT_FILE = Path("dragoman.yaml")

Format: TypeAlias = Literal["text", "json", "github"]

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", envvar="DRAGOMAN_CONFIG", help="The configuration file. Default: dragoman.yaml, if it exists."
    ),
]
EnvFile = Annotated[
    Path | None,
    typer.Option(
        envvar="DRAGOMAN_ENV_FILE",
        help="A file of NAME=value lines; variables of the environment override it. Default: .env next to"
        " the configuration file, if it exists.",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        envvar="DRAGOMAN_INSECURE",
        help="Allow listening on any address without keys, and sending keys over plain http.",
    ),
]


def load_configuration(file: Path | None, env: dict[str, str], insecure: bool) -> CheckedConfig:
    """Load the named file, else dragoman.yaml, else build a configuration from the environment.

    Raises ConfigErrors. Exits with status 2 if none of the three exists.
    """
    if file is None and not DEFAULT_FILE.exists():
        from .without_file import load_without_file

        return load_without_file(env, insecure)
    from dragoman.proxy.config.load import check

    return check(file or DEFAULT_FILE, env, insecure=insecure)


def read_environment(
    env_file: Path | None,
    config: Path | None = None,
    *,
    must_exist: bool = True,
    report: Report | None = None,
) -> dict[str, str]:
    """The environment's variables, then those of `env_file`, or, if that is None, of the file `.env` next to the
    configuration file, which `must_exist` for that. `report` gets the warnings; they are printed if it is None. Raises
    ConfigErrors for a file that is named."""
    from dragoman.proxy.config.envfile import read_env

    if env_file:
        return {**read_env(env_file), **os.environ}
    return {**_read_env_next_to(config or DEFAULT_FILE, must_exist, report or print_problems), **os.environ}


def _read_env_next_to(config: Path, must_exist: bool, report: Report) -> dict[str, str]:
    """The variables of `.env` next to a configuration file. Other programs read that file too, so a line that
    is no variable is a warning only."""
    from dragoman.proxy.config.envfile import FILE, parse_env

    file = config.parent / FILE
    if not file.is_file() or (must_exist and not config.exists()):
        return {}
    variables, problems = parse_env(file)
    report([replace(problem, severity="warning") for problem in problems])
    return variables


@contextmanager
def exit_on_config_errors(form: Format = "text") -> Iterator[None]:
    """If the body raises ConfigErrors: print the problems, and exit with status 2."""
    from dragoman.proxy.config.problems import ConfigErrors

    try:
        yield
    except ConfigErrors as errors:
        print_problems(errors.problems, form)
        if form == "text":
            kinds = [problem.severity for problem in errors.problems]
            counts = [format_count(kinds.count(kind), kind) for kind in ("error", "warning") if kind in kinds]
            print(f"\n{errors.problems[0].file}: {', '.join(counts)}", file=sys.stderr)
        raise typer.Exit(2) from None


def print_problems(problems: Sequence[Problem], form: Format = "text") -> None:
    """Print text for people to stderr, and the other forms, which are for programs, to stdout."""
    from dragoman.proxy.config.problems import render

    if form == "text":
        color = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        if problems:
            print(render(problems, color=color), file=sys.stderr)
    elif problems or form == "json":
        print(render(problems, form))


def format_count(number: int, noun: str) -> str:
    """`1 model`, `2 models`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def write_new_file(file: Path, text: str, overwrite: bool) -> None:
    """Write a file that does not exist yet, or any file if `overwrite` is set. Exits with status 2 on failure."""
    try:
        with file.open("w" if overwrite else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        exit_with_error(f"{file} exists; --force overwrites it")
    except OSError as error:
        exit_with_error(f"cannot write {file}: {error.strerror}")


def exit_with_error(text: str) -> NoReturn:
    """Print the error to stderr, and exit with status 2. What others wrote of it controls no terminal."""
    print(f"error: {remove_controls(text)}", file=sys.stderr)
    raise typer.Exit(2)
