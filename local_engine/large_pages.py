"""Weights on large pages, which a process gets by the environment that it starts with.

A step of decoding reads every weight once, and on pages of 4 KiB the processor waits for address translation. glibc
asks for large ones where Linux gives them on demand; elsewhere the variable means nothing. docs/engine.md says how to
measure.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["with_large_pages"]

VARIABLE, VALUE = "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"


def with_large_pages(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that runs models. What it says of glibc's memory already, stays."""
    given = environment.get(VARIABLE, "")
    if "glibc.malloc.hugetlb" in given:
        return dict(environment)
    return {**environment, VARIABLE: f"{given}:{VALUE}" if given else VALUE}
