"""The page of all commands of the command line, with their arguments, options and variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import typer.main

from dragoman.proxy.cli.main import app

from .markdown import HEAD, code, lines, table

__all__ = ["Parameter", "command_page", "list_commands", "list_parameters"]

_TITLES = ("Option", "Variable", "Default", "Meaning")
_EXTRA = re.compile(r"  \[([^\[\]]+)\]$")
"""What a help text ends with: the variable, the default, a range and whether the option is required."""


class Parameter(NamedTuple):
    """An argument or option: its name as help has it, the variable that sets it, its default, and its meaning."""

    name: str
    variable: str
    default: str
    meaning: str


def command_page() -> str:
    """The page, in the order of `dragoman --help`."""
    body = [
        HEAD,
        "",
        *lines(
            "# Command line",
            "What `--help` says of every command. The environment variable next to an option sets it too; the option "
            "counts more. [Commands](commands.md) shows what some of them print.",
            "The exit status is 0 for success, 1 for a fault that the command is there to find, 2 for wrong usage or "
            "configuration, and 130 if the command was interrupted.",
        ),
    ]
    for context in list_commands():
        body += _describe_command(context)
    return "\n".join(body).rstrip("\n") + "\n"


def list_commands() -> Iterator[Any]:
    """The context of each command that does something. Its classes are those of the click that is part of typer."""
    root = typer.main.get_command(app)
    yield from _list_below(root.context_class(root, info_name="dragoman", **root.context_settings))


def _list_below(context: Any) -> Iterator[Any]:
    children = getattr(context.command, "commands", {})
    for name, command in children.items():
        if not command.hidden:
            yield from _list_below(context.__class__(command, parent=context, info_name=name))
    if not children:
        yield context


def list_parameters(context: Any) -> Iterator[Parameter]:
    """The arguments and options of a command that its help shows."""
    records = (parameter.get_help_record(context) for parameter in context.command.params)
    return (_read_record(*record) for record in records if record)


def _describe_command(context: Any) -> list[str]:
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    rows = [
        (code(one.name), one.variable and code(one.variable), one.default and code(one.default), one.meaning)
        for one in list_parameters(context)
    ]
    text = " ".join((command.help or "").split())
    head = lines(f"## {context.command_path}", text, code(f"{context.command_path} {usage}"))
    return [*head, *table(_TITLES, rows), *lines(*([command.epilog] if command.epilog else []))]


def _read_record(name: str, text: str) -> Parameter:
    """What the two columns of a help line say."""
    found = _EXTRA.search(text)
    extras = dict(part.partition(": ")[::2] for part in found[1].split("; ")) if found else {}
    variable = extras.pop("env var", "")
    default = extras.pop("default", "")
    meaning = " ".join(_EXTRA.sub("", text).split())
    rest = " ".join(f"{key}." for key in extras).capitalize()
    return Parameter(name, variable, default, f"{meaning} {rest}".strip())
