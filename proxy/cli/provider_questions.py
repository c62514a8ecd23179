"""The questions of `dragoman init`: which provider to use, its address and its key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import typer

from dragoman.adapters.providers import EnvironmentProvider
from dragoman.proxy.config.environment import find_providers, list_providers

__all__ = ["ask_for_provider", "confirm_providers"]

_OPTIONAL = re.compile(r"\$\{(\w+):-([^}]*)\}")
_NO_KEY = "unused"
"""A key for servers without keys: clients need one that is not empty."""


def confirm_providers(env: Mapping[str, str]) -> list[EnvironmentProvider]:
    """The providers of the environment that the user wants to use."""
    return [
        provider
        for provider in find_providers(env)
        if typer.confirm(f"Use {provider.name} ({', '.join(provider.variables)})?", default=True, err=True)
    ]


def ask_for_provider(env: Mapping[str, str]) -> tuple[EnvironmentProvider, dict[str, str]] | None:
    """A provider, and the values of its variables that were typed; None if the user wants none."""
    known = list_providers()
    for number, provider in enumerate(known, 1):
        typer.echo(f"  {number}  {_describe(provider)}", err=True)
    typer.echo("  0  none: only the small model that comes with dragoman", err=True)
    choice = typer.prompt(
        "Which provider?", default="1", value_proc=partial(_parse_choice, [one.name for one in known]), err=True
    )
    return None if choice == 0 else (known[choice - 1], dict(_ask_for_variables(known[choice - 1], env)))


def _describe(provider: EnvironmentProvider) -> str:
    """The name of a provider, and its address if it has one by default."""
    address = "".join(default for _, default in _OPTIONAL.findall(provider.base_url))
    return f"{provider.name} ({address}, or another server with its API)" if address else provider.name


def _parse_choice(names: Sequence[str], text: str) -> int:
    """The number of a choice that was typed as a number or as a name."""
    choices = {str(number): number for number in range(len(names) + 1)}
    choices |= {"none": 0} | {name: number for number, name in enumerate(names, 1)}
    if text.strip().lower() not in choices:
        raise typer.BadParameter(f"a number from 0 to {len(names)}, or one of the names")
    return choices[text.strip().lower()]


def _ask_for_variables(provider: EnvironmentProvider, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The variables whose values were typed: of the address only another one than the default, and the key last."""
    for name, default in _OPTIONAL.findall(provider.base_url):
        if (address := typer.prompt(f"Address ({name})", default=env.get(name) or default, err=True)) != default:
            yield name, address
    *names, key = provider.variables
    for name in names:
        yield name, typer.prompt(name, default=env.get(name), err=True)
    if not env.get(key):
        text = f"Key ({key}; empty if the server has none)"
        yield key, typer.prompt(text, default=_NO_KEY, hide_input=True, show_default=False, err=True)
