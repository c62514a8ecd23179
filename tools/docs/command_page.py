"""The page of all commands of the command line, with their arguments, options and variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from dragoman.proxy.cli.main import app

from .markdown import HEAD, code, lines, table

__all__ = ["command_page"]

_TITLES = ("Option", "Variable", "Default", "Meaning")
_EXTRA = re.compile(r"  \[([^\[\]]+)\]$")
"""What a help text ends with: the variable, the default, a range and whether the option is required."""


def command_page() -> str:
    """The page, in the order of `dragoman --help`."""
    root = typer.main.get_command(app)
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
    for context in _list_commands(root.context_class(root, info_name="dragoman", **root.context_settings)):
        body += _describe_command(context)
    return "\n".join(body).rstrip("\n") + "\n"


def _list_commands(context: Any) -> Iterator[Any]:
    """The context of each command that does something. Its classes are those of the click that is part of typer."""
    children = getattr(context.command, "commands", {})
    for name, command in children.items():
        if not command.hidden:
            yield from _list_commands(context.__class__(command, parent=context, info_name=name))
    if not children:
        yield context


def _describe_command(context: Any) -> list[str]:
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    records = (parameter.get_help_record(context) for parameter in command.params)
    rows = [_describe_parameter(*record) for record in records if record]
    text = " ".join((command.help or "").split())
    head = lines(f"## {context.command_path}", text, code(f"{context.command_path} {usage}"))
    return [*head, *table(_TITLES, rows), *lines(*([command.epilog] if command.epilog else []))]


def _describe_parameter(name: str, text: str) -> tuple[str, str, str, str]:
    """A row for an argument or option, from the two columns of its help."""
    found = _EXTRA.search(text)
    extras = dict(part.partition(": ")[::2] for part in found[1].split("; ")) if found else {}
    variable = extras.pop("env var", "")
    default = extras.pop("default", "")
    meaning = " ".join(_EXTRA.sub("", text).split())
    rest = " ".join(f"{key}." for key in extras).capitalize()
    return code(name), code(variable) if variable else "", code(default) if default else "", f"{meaning} {rest}".strip()
