"""Durations, sizes, addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman.adapters.registry import dialects
from dragoman.proxy.config.models import Provider
from dragoman.proxy.config.traffic import Timeouts
from dragoman.proxy.config.urls import BadUrl, check_base_url, is_loopback
from dragoman.proxy.config.values import format_bytes, format_seconds, parse_bytes, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("500ms", 0.5), ("2m", 120), ("1h", 3600), ("30d", 2592000),
     ("1.5 s", 1.5), ("30", None), ("30x", None), ("s", None),
     ("-1s", None), ("1m30s", None), ("9" * 400 + "s", None), ("1e3s", None), ("", None)],
)  # fmt: skip
def test_a_duration_is_a_number_with_a_unit(text: str, seconds: float | None) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("32MiB", 33554432),
        ("64kB", 64000),
        ("1GiB", 1073741824),
        ("1.5KiB", 1536),
        ("7B", 7),
        ("7", None),
        ("7mb", None),
    ],
)
def test_a_size_is_a_number_with_a_unit(text: str, size: int | None) -> None:
    assert parse_bytes(text) == size


@given(st.integers(1, 10**6))
def test_formatted_sizes_and_durations_parse_back(number: int) -> None:
    assert parse_bytes(format_bytes(number)) == number
    assert parse_seconds(format_seconds(number / 1000)) == pytest.approx(number / 1000, rel=1e-5)
    assert parse_seconds(format_seconds(number * 3600)) == number * 3600


def test_python_code_may_leave_the_unit_out() -> None:
    assert Timeouts.from_values({"connect": 0.25}).connect == 0.25
    with pytest.raises(ValidationError):
        Timeouts.from_values({"connect": float("inf")})


@pytest.mark.parametrize(
    "url",
    [
        "https://host",
        "http://host:8080/v1/",
        "https://[::1]:1/v1",
        "https://host/a%20b/v1",
        "HTTPS://Host/v1",
        "http://a_b/v1",
    ],
)
def test_good_addresses(url: str) -> None:
    assert check_base_url(url) == url


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("host/v1", "begin with"),
        ("https:host", "begin with"),
        ("//host", "begin with"),
        ("file:///etc/passwd", "begin with"),
        ("https://user@host", "user name"),
        ("https://user:pass@host", "user name"),
        ("https://host?x", "query"),
        ("https://host#x", "query"),
        ("https://host?", "query"),
        ("https://:80", "host or port"),
        ("https://host:0", "host or port"),
        ("https://host:x", "host or port"),
        ("https://[::1", "host or port"),
        ("https://ho%73t", "host or port"),
        ("https://host/../x", "path"),
        ("https://host/%2E%2e/x", "path"),
        ("https://host/%", "path"),
        ("https://host\\@evil", "backslash"),
        ("https://hôst", "ASCII"),
        ("https://host/\n", "space"),
        ("", "begin with"),
    ],
)
def test_bad_addresses(url: str, word: str) -> None:
    with pytest.raises(BadUrl) as caught:
        check_base_url(url)
    assert word in caught.value.message
    with pytest.raises(ValidationError):
        Provider.from_values({"dialect": "openai", "base_url": url})


@given(st.text(max_size=30))
def test_any_address_is_judged(text: str) -> None:
    try:
        check_base_url(f"https://{text}")
    except BadUrl as error:
        assert error.message


@pytest.mark.parametrize(
    ("dialect", "url", "shorter"),
    [
        ("openai", "https://h/v1", None),
        ("openai", "https://h/openai/v1/chat/completions/", "https://h/openai/v1"),
        ("openai", "https://h/v1/v1", "https://h/v1"),
        ("databricks", "https://h", None),
        ("databricks", "https://h/serving-endpoints/", "https://h"),
        ("azure", "https://h/models", None),
        ("azure", "https://h/models/chat/completions", "https://h/models"),
        ("mindie", "https://h:1025", None),
        ("mindie", "https://h:1025/v1", "https://h:1025"),
        ("mindie", "https://h:1025/prefix/v1/chat", "https://h:1025/prefix"),
    ],
)
def test_overlap(dialect: str, url: str, shorter: str | None) -> None:
    base = dialects[dialect].base_address
    assert base is not None and base.shorten(url) == shorter


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "10.0.0.1", "localhost.org", "127.0.0.1.org", "::"])
def test_no_loopback(host: str) -> None:
    assert not is_loopback(host)
