"""What the commands share: the configuration that they are given, and how they end where something is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn, TypeAlias

import typer

from dragoman.schemas import all_profiles

if TYPE_CHECKING:
    from dragoman.proxy.config.load import Checked
    from dragoman.proxy.config.problems import Problem

__all__ = [
    "DEFAULT_FILE",
    "ConfigFile",
    "EnvFile",
    "Format",
    "Insecure",
    "Profile",
    "configuration",
    "count",
    "environment",
    "fail",
    "problems_shown",
    "report",
]

DEFAULT_FILE = Path("dragoman.yaml")

Format: TypeAlias = Literal["text", "json", "github"]
if TYPE_CHECKING:
    Profile: TypeAlias = str
else:
    Profile = Literal[all_profiles()]

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", envvar="DRAGOMAN_CONFIG", help="The configuration file. Default: dragoman.yaml, where it exists."
    ),
]
EnvFile = Annotated[
    Path | None,
    typer.Option(envvar="DRAGOMAN_ENV_FILE", help="A file of NAME=value lines; the environment comes before it."),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        envvar="DRAGOMAN_INSECURE",
        help="Allow to listen for everyone without keys, and to send keys over http.",
    ),
]


def configuration(file: Path | None, env: dict[str, str], insecure: bool) -> Checked:
    """From the file that is named, else from dragoman.yaml, else from the environment. Raises ConfigErrors; ends the
    program with status 2 where there is none of the three."""
    from dragoman.local_engine import embedded
    from dragoman.proxy.config.load import Checked, check
    from dragoman.proxy.config.zero import from_environment, half_set

    from .onboarding import found, nothing

    if file is not None or DEFAULT_FILE.exists():
        return check(file or DEFAULT_FILE, env, insecure=insecure)
    for hint in half_set(env):
        print(f"note: {hint}", file=sys.stderr)
    config = from_environment(env, insecure=insecure, embedded=embedded.can_answer())
    if config is None:
        fail(f"there is nothing to serve: no {DEFAULT_FILE} in {Path.cwd()}, and {nothing()}")
    print(f"no {DEFAULT_FILE} here; {found(config)}", file=sys.stderr)
    return Checked(config, ())


def environment(file: Path | None) -> dict[str, str]:
    from dragoman.proxy.config.envfile import read_env

    return {**(read_env(file) if file else {}), **os.environ}


@contextmanager
def problems_shown(form: Format = "text") -> Iterator[None]:
    """End the program with status 2, and the problems, where the configuration has errors."""
    from dragoman.proxy.config.problems import ConfigErrors

    try:
        yield
    except ConfigErrors as errors:
        report(errors.problems, form)
        if form == "text":
            kinds = [problem.severity for problem in errors.problems]
            counts = [count(kinds.count(kind), kind) for kind in ("error", "warning") if kind in kinds]
            print(f"\n{errors.problems[0].file}: {', '.join(counts)}", file=sys.stderr)
        raise typer.Exit(2) from None


def report(problems: Sequence[Problem], form: Format = "text") -> None:
    """Text is for people, on stderr; the other forms are for programs, on stdout."""
    from dragoman.proxy.config.problems import render

    if form == "text":
        color = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        if problems:
            print(render(problems, color=color), file=sys.stderr)
    elif problems or form == "json":
        print(render(problems, form))


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def fail(text: str) -> NoReturn:
    print(f"error: {text}", file=sys.stderr)
    raise typer.Exit(2)
