"""Read the sentences of errors: limit their size, strip HTML, find names of parameters and values in them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from .faults import Kind
from .paths import Path, parse_path

__all__ = [
    "Hint",
    "default_message",
    "extract_text",
    "find_hint",
    "parse_provider_path",
    "read_word",
    "split_code",
    "truncate",
]

MAX_BYTES = 2048
_WORD = 100
_PATH = 200
_MARKUP = re.compile(r"^\s*<[!/?a-z]|<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_OPENINGS = tuple(re.compile(rf"<{tag}[^<>]*>", re.IGNORECASE) for tag in ("pre", "title", "message"))
_TAG = re.compile(r"<[^<>]*>")
_CODED = re.compile(r"([A-Z][A-Z_]{2,60}): (.+)", re.DOTALL)


def extract_text(text: str) -> str:
    """Return the readable part of a text, at most 2 KiB: of HTML and XML only what is in `<pre>`, `<title>` or
    `<Message>` (AWS)."""
    if not _MARKUP.search(text[:MAX_BYTES]):
        return truncate(text.strip())
    for opening in _OPENINGS:
        if found := opening.search(text):
            inside = text[found.end() :].split("</", 1)[0]
            if text_inside := " ".join(html.unescape(_TAG.sub(" ", inside)).split()):
                return truncate(text_inside)
    return ""


def truncate(text: str, size: int = MAX_BYTES) -> str:
    """Cut a text to `size` bytes of UTF-8, and replace what cannot be encoded."""
    data = text[: size + 1].encode("utf-8", "replace")
    if len(data) <= size:
        return data.decode()
    return data[: size - 3].decode("utf-8", "ignore") + "..."


def split_code(text: str) -> tuple[str | None, str]:
    """Split `CODE: message`, the form of Databricks' plain texts, into code and message; the code may be None."""
    found = _CODED.fullmatch(text)
    return (found[1], found[2].strip()) if found else (None, text)


def default_message(status: int) -> str:
    """Return the message for an error reply without one."""
    try:
        phrase = f" ({HTTPStatus(status).phrase})"
    except ValueError:
        phrase = ""
    return f"The provider answered with status {status}{phrase} and gave no reason"


def read_word(value: Any) -> str | None:
    """Return a provider's code or label, a string or an integer, as a string; None if it is empty or anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 10**20 else None
    if isinstance(value, str):
        return truncate(value.strip(), _WORD) or None
    return None


def _parse_value(text: str) -> Any:
    """Return the value that a sentence quotes: parsed if it is JSON, else the text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return truncate(text, _PATH)


@dataclass(frozen=True, slots=True)
class Hint:
    """What a sentence says about an error. `kind` is None if the sentence does not show it."""

    kind: Kind | None = None
    path: Path = ()
    value: Any = None


def find_hint(text: str) -> Hint:
    """Find the parameter, its value and the kind of error in a sentence that a provider is known to write."""
    for pattern, kind, read in _SENTENCES:
        if found := pattern.search(text):
            path, value = read(found)
            return Hint(kind, path, value)
    return Hint()


def parse_provider_path(text: str) -> Path:
    """Parse a path that a provider wrote; empty if the text is no path."""
    if not text or len(text) > _PATH or any(space in text for space in " \t\r\n"):
        return ()
    return parse_path(text)


def _read_name(found: re.Match[str]) -> tuple[Path, Any]:
    return parse_provider_path(found[1]), None


def _read_first_name(found: re.Match[str]) -> tuple[Path, Any]:
    names = re.findall(r"['\"]([^'\"]+)['\"]", found[1])
    return (names[0][:_PATH],) if names else (), None


def _read_pointer(found: re.Match[str]) -> tuple[Path, Any]:
    parts = [part.replace("~1", "/").replace("~0", "~") for part in found[1][:_PATH].split("/")]
    return tuple(int(part) if place and part.isdecimal() else part for place, part in enumerate(parts) if part), None


def _read_rule(found: re.Match[str]) -> tuple[Path, Any]:
    got = re.search(r"\bgot (.{1,200}?)\.?$", found[2])
    return parse_provider_path(found[1]), _parse_value(got[1]) if got else None


def _read_model(_: re.Match[str]) -> tuple[Path, Any]:
    return ("model",), None


def _read_option(found: re.Match[str]) -> tuple[Path, Any]:
    return (), found[1][:_PATH]


_DOTTED_REST = r"[\w.]{0,200}"
_DOTTED = rf"[a-z]{_DOTTED_REST}"
"""A path as Anthropic and pydantic write it: `messages.0.content`."""
_SentenceReader = Callable[[re.Match[str]], tuple[Path, Any]]
_SENTENCES: tuple[tuple[re.Pattern[str], Kind | None, _SentenceReader], ...] = (
    (re.compile(r"Extra parameters \[(.{0,2000}?)\] are not allowed"), "extra_parameter", _read_first_name),
    (re.compile(r"Unexpected EXTRA_PARAMETERS option ([^\s,]+),"), None, _read_option),
    (re.compile(r"Validation error at #/([^\s:]+): Extra inputs"), "extra_parameter", _read_pointer),
    (re.compile(r"Validation error at #/([^\s:]+):"), None, _read_pointer),
    (re.compile(rf"^({_DOTTED}): Extra inputs are not permitted"), "extra_parameter", _read_name),  # Anthropic
    (re.compile(rf"^({_DOTTED}): (?:Field required|(?:Input|String|List) should|\d+ > \d+)"), None, _read_name),
    (re.compile(rf"^((?:messages|system|tools)\.\d{_DOTTED_REST}): "), None, _read_name),
    (re.compile(r'json: unknown field "([^"]+)"'), "extra_parameter", _read_name),
    (re.compile(r"Unrecognized request arguments? supplied: (\w+)"), "extra_parameter", _read_name),
    (
        re.compile(r"^(?:The |Got )?model\b.{0,300}?\bnot (?:found|exist)", re.IGNORECASE),
        "model_not_found",
        _read_model,
    ),
    (re.compile(r"^(?:Request param|Parameter|Param) (\w[\w.\[\]]*)(.*)", re.DOTALL), None, _read_rule),
    (re.compile(r"^([a-z][a-z0-9_]*) must be (.*)", re.DOTALL), None, _read_rule),
)
