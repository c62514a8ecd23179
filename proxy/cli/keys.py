"""The command `keys`: new keys for clients, of which the configuration has only the hash."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import exit_with_error

__all__ = ["app"]

_PREFIX = "sk-dragoman-"
"""Clients, and programs that look for keys in texts, know keys by such a beginning."""

app = typer.Typer(name="keys", help="Keys of clients.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def keys() -> None:
    """Keys of clients."""


@app.command(epilog="Example: dragoman keys new --name alice")
def new(name: Annotated[str, typer.Option(help="The key's name in the configuration and in the log.")] = "new") -> None:
    """Make a key, and print it with the lines for the configuration file, which has only its hash."""
    from hashlib import sha256
    from secrets import token_urlsafe

    from dragoman.proxy.config.values import is_label

    if not is_label(name):
        exit_with_error("a name has letters, digits and . _ -, at most 64, a letter or digit first")
    key = _PREFIX + token_urlsafe(32)
    digest = sha256(key.encode()).hexdigest()
    print(f"{key}\n\nThis key is not shown again. Add it to the configuration file by its hash:\n")
    print(f"keys:\n  - name: {name}\n    key_hash: sha256:{digest}")
