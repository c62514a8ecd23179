"""The command `schema`: JSON Schemas, and facts about models, for editors and for other programs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from .completion import complete_schema
from .options import exit_with_error
from .profile_option import Profile

__all__ = ["schema"]


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            help="config, <dialect>/<protocol>.<side> such as mindie/chat.reply, or models/<vendor>.",
            autocompletion=complete_schema,
        ),
    ] = None,
    profile: Annotated[
        Profile,
        typer.Option(help="The profile of the dialect. A profile without a file of its own is the documented one."),
    ] = "documented",
    show_list: Annotated[bool, typer.Option("--list", allow_from_autoenv=False, help="List the names.")] = False,
) -> None:
    """Print the JSON Schema of the configuration, or of a payload. A payload is a request or a reply of a dialect. Also
    prints the facts about a vendor's models."""
    from dragoman.schemas import SchemaNotFound, load, model_files, names

    known = ("config", "models", *model_files(), *names())
    if show_list:
        print("\n".join(known))
        return
    if name is None:
        exit_with_error("name a schema; `dragoman schema --list` lists them")
    try:
        found = load(name, profile)
    except SchemaNotFound:
        from dragoman.proxy.config.document import did_you_mean

        exit_with_error(f'there is no schema "{name}" {did_you_mean(name, known)}'.strip())
    print(json.dumps(found, indent=2, ensure_ascii=False))
