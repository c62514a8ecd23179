"""Large memory pages for weights, and for bodies of megabytes, requested through the environment of a new process.

A decode step reads every weight once, and with pages of 4 KiB the processor waits for address translation; a large body
needs new memory, which the system provides page by page. With this variable glibc requests large pages, if Linux
provides them on demand; on other systems it has no effect. docs/engine.md says how to measure the effect.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["request_large_pages"]

VARIABLE, VALUE = "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"


def request_large_pages(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with large pages requested. An existing setting of `glibc.malloc.hugetlb` is kept."""
    given = environment.get(VARIABLE, "")
    if "glibc.malloc.hugetlb" in given:
        return dict(environment)
    return {**environment, VARIABLE: f"{given}:{VALUE}" if given else VALUE}
