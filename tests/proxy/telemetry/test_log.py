"""Lines of the log, as JSON and for people."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator

import pytest

from dragoman.proxy.telemetry.log import create_log, render_drops
from dragoman.proxy.telemetry.mask import Mask


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is an hour ahead of UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC-1")
        time.tzset()
        yield
    time.tzset()


def test_logs_are_masked_in_every_format() -> None:
    for style in ("json", "console"):
        stream = io.BytesIO()
        log = create_log(Mask(["sk-canary"]), style, "info", stream)
        try:
            raise ValueError("sk-canary")
        except ValueError as error:
            log.error("defect sk-canary", key="sk-canary", exc_info=error)
        log.debug("nothing")
        assert b"canary" not in stream.getvalue()
        assert b"ValueError: ***" in stream.getvalue()
        assert style == "console" or json.loads(stream.getvalue())["level"] == "error"


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize("level", ["debug", "info", "warning"])
def test_the_line_of_an_exchange_is_like_any_other(style: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.25)
    line = {"request_id": "r", "model": "sk-canary", "usage": {"total_tokens": 3}}
    short, long = io.BytesIO(), io.BytesIO()
    create_log(Mask(["sk-canary"]), style, level, short).write_event("info", "exchange", dict(line))
    create_log(Mask(["sk-canary"]), style, level, long).info("exchange", **line)
    assert short.getvalue() == long.getvalue()
    assert (b"***" in short.getvalue()) is (level != "warning")


def test_nothing_is_critical() -> None:
    stream = io.BytesIO()
    create_log(Mask(), "json", "critical", stream).error("x")
    assert stream.getvalue() == b""


def test_a_line_for_people(monkeypatch: pytest.MonkeyPatch, berlin: None) -> None:
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.25)
    stream = io.BytesIO()
    fields = {"model": "größe-7", "message": 'say "a" = b', "status": 200, "usage": {"total_tokens": 3}, "key": None}
    create_log(Mask(), "console", "info", stream).warning("target_pauses", **fields)
    create_log(Mask(), "console", "info", stream).info("store_swept", bytes=7)
    assert stream.getvalue().decode() == (
        "23:13:20 warning target_pauses model=größe-7 "
        'message="say \\"a\\" = b" status=200 usage={"total_tokens": 3} key=null\n'
        "23:13:20 store_swept bytes=7\n"
    )


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize("value", ["a\r\n\x1b[31mb", "\x1b]0;title\x07", {"deep": ["\x1b[2J"]}])
def test_no_value_sends_commands_to_a_terminal(style: str, value: object) -> None:
    stream = io.BytesIO()
    create_log(Mask(), style, "info", stream).info("x", model=value)
    assert stream.getvalue().count(b"\n") == 1
    assert b"\x1b" not in stream.getvalue() and b"\x07" not in stream.getvalue()


@pytest.mark.parametrize("value", ["\x9b31m", "a\u202eb", "\ud800"])
def test_what_is_not_printable_is_escaped_for_people(value: str) -> None:
    stream = io.BytesIO()
    create_log(Mask(), "console", "info", stream).info("x", model=value)
    shown = stream.getvalue().decode().rstrip("\n")
    assert shown.isprintable() and f"\\u{ord(max(value)):04x}" in shown


@pytest.mark.parametrize("value", ["\x7f", "\x9b31m", "a\u202eb", "\u2066", "\u2028"])
def test_control_characters_that_json_allows_are_escaped(value: str) -> None:
    stream = io.BytesIO()
    create_log(Mask(), "json", "info", stream).info("x", model=value, name="größe")
    text = stream.getvalue().decode().rstrip("\n")
    assert text.isprintable() and "größe" in text
    assert json.loads(text)["model"] == value


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


NESTED: list[object] = []
NESTED.append(NESTED)


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("\udcff", "udcff"),
        ({"a": ["\ud800b"]}, "ud800b"),
        (16**5000, "0x1"),
        ({1: "a"}, "1"),
        (NESTED, "["),
        (Unprintable(), "<Unprintable>"),
        (b"bytes", "bytes"),
    ],
    ids=["half of a pair", "a deep one", "large number", "key", "circle", "object", "bytes"],
)
def test_every_value_can_be_logged(style: str, value: object, shown: str) -> None:
    stream = io.BytesIO()
    create_log(Mask(), style, "info", stream).info("x", model=value)
    (line,) = stream.getvalue().decode().splitlines()
    assert line.isprintable() and shown in line
    assert style == "console" or json.loads(line)["event"] == "x"


def test_the_line_that_replaces_dropped_ones() -> None:
    line = json.loads(render_drops("json", 3))
    assert (line["event"], line["level"], line["lines"]) == ("log_dropped", "warning", 3)
    assert b"log_dropped lines=3" in render_drops("console", 3)
