"""The command `usage`: what keys have used, from the store."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import ConfigFile, EnvFile, exit_on_config_errors, exit_with_error, load_configuration, read_environment

if TYPE_CHECKING:
    from dragoman.proxy.telemetry.usage_rows import UsageRow

__all__ = ["usage"]

_NAMES = ("day", "key", "model", "target")
_COUNTS = ("requests", "attempts", "input_tokens", "output_tokens", "cached_tokens", "cost")
_DIGITS = 6  # of money

_Line = dict[str, Any]


def usage(
    by: Annotated[str, typer.Option(help="What to add up by: day, key, model, target, with commas.")] = "key,model",
    since: Annotated[
        str | None, typer.Option(help="The first day, as 2027-01-31. Default: the first of this month, in UTC.")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
    config: ConfigFile = None,
    env_file: EnvFile = None,
    store: Annotated[Path | None, typer.Option(help="The store's file, instead of the configuration's.")] = None,
) -> None:
    """Show requests, tokens and cost by key and model. They are in the store of the proxy, which may run meanwhile."""
    names, day = _parse_names(by), _parse_day(since)
    rows = _load(store or _find_store(config, env_file), day)
    lines = _add_up(rows, names)
    if as_json:
        import json

        print(json.dumps(lines, indent=2, ensure_ascii=False))
    elif as_csv:
        import csv

        writer = csv.DictWriter(sys.stdout, (*names, *_COUNTS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    else:
        _print_table(lines, names, day)


def _parse_names(by: str) -> list[str]:
    names = [name.strip() for name in by.split(",")]
    if wrong := [name for name in names if name not in _NAMES]:
        exit_with_error(f"--by: {wrong[0]!r} is none of {', '.join(_NAMES)}")
    return names


def _parse_day(since: str | None) -> str:
    if since is None:
        return f"{datetime.now(UTC):%Y-%m-01}"
    try:
        return f"{datetime.strptime(since, '%Y-%m-%d'):%Y-%m-%d}"
    except ValueError:
        exit_with_error(f"--since: {since!r} is not a day such as 2027-01-31")


def _find_store(config: Path | None, env_file: Path | None) -> Path:
    from dragoman.proxy.conversations.stores.factory import store_path
    from dragoman.proxy.conversations.stores.interface import StoreError

    with exit_on_config_errors():
        chosen = load_configuration(config, read_environment(env_file, config), insecure=True).config.store
    if chosen.kind != "sqlite":
        exit_with_error(f"the store of the kind {chosen.kind} is in the memory of the proxy; set store.kind to sqlite")
    try:
        return store_path(chosen)
    except StoreError as error:
        exit_with_error(str(error))


def _load(path: Path, since: str) -> list[UsageRow]:
    from dragoman.proxy.conversations.stores.interface import StoreError
    from dragoman.proxy.conversations.stores.sqlite_file import read_usage

    try:
        return read_usage(path, since)
    except StoreError as error:
        exit_with_error(str(error))


def _add_up(rows: Iterable[UsageRow], names: Sequence[str]) -> list[_Line]:
    """The sums of rows with the same names, in the order of the names."""
    sums: dict[tuple[str, ...], _Line] = {}
    for row in rows:
        place = tuple(getattr(row, name) for name in names)
        known = sums.setdefault(place, {**dict(zip(names, place, strict=True)), **dict.fromkeys(_COUNTS, 0)})
        known.update({name: known[name] + getattr(row, name) for name in _COUNTS})
    return [{**line, "cost": round(line["cost"], _DIGITS)} for _, line in sorted(sums.items())]


def _print_table(lines: Sequence[_Line], names: Sequence[str], since: str) -> None:
    if not lines:
        print(f"nothing was used since {since}")
        return
    head = [name.replace("_", " ") for name in (*names, *_COUNTS)]
    cells = [[str(line[name]) if name in names else f"{line[name]:,}" for name in (*names, *_COUNTS)] for line in lines]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for row in (head, *cells):
        texts = [
            text.ljust(width) if place < len(names) else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(texts).rstrip())
