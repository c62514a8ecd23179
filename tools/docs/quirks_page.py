"""The page that lists the quirks of real servers, with their sources and the cases that show them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from dragoman.contract.quirk_cases import name_case
from dragoman.contract.quirk_files import Quirk

from .markdown import HEAD, code, lines, table

__all__ = ["quirks_page"]

_TITLES = ("What the server does", "Servers", "Source", "Cases")


def quirks_page(quirks: Iterable[Quirk]) -> str:
    """The page of these quirks, a table for each group."""
    every = list(quirks)
    body = [
        HEAD,
        "",
        *lines(
            "# Quirks of real servers",
            f"{len(every)} ways in which servers and gateways differ from the references that they follow, byte by "
            "byte as they were seen. For each of them the [contract suite](contract.md) has cases that play these "
            "bytes behind a proxy and say what its client must get: the whole reply, the stream, and the same over "
            "Responses. dragoman passes all of them.",
            "`dragoman fake openai --behaviour 'quirk(name=calls/one-id)'` plays one of them for your own application. "
            "The bytes are in `contract/quirks/`. A source `owner/repository#number` is a thread on GitHub.",
        ),
    ]
    for about, group in groupby(every, key=lambda quirk: quirk.about):
        body += [*lines(f"## {about}"), *table(_TITLES, map(_describe, group))]
    return "\n".join(body).rstrip("\n") + "\n"


def _describe(quirk: Quirk) -> tuple[str, str, str, str]:
    first, *others = (name_case(quirk, protocol, form) for protocol in quirk.clients for form in quirk.forms)
    more = f" and {len(others)} more" if others else ""
    return quirk.title, quirk.servers, quirk.source, code(first) + more
