"""The environment that requests large pages."""

from __future__ import annotations

import pytest

from dragoman.local_engine.large_pages import request_large_pages


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "glibc.malloc.hugetlb=1"),
        ("glibc.malloc.check=3", "glibc.malloc.check=3:glibc.malloc.hugetlb=1"),
        ("glibc.malloc.hugetlb=0", "glibc.malloc.hugetlb=0"),
    ],
)
def test_large_pages_are_requested_unless_already_set(given: str | None, expected: str) -> None:
    environment = {"PATH": "/bin"} | ({} if given is None else {"GLIBC_TUNABLES": given})
    assert request_large_pages(environment) == {"PATH": "/bin", "GLIBC_TUNABLES": expected}
