"""Syntax errors of YAML in words for people, and what can be read of a file in spite of them.

A file with a syntax error is read section by section: a section begins with a key at the beginning of a line. So one
unclosed bracket does not hide the mistakes of the rest of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import Node as YamlNode

from .document import Document
from .masks import mask_secrets
from .problems import Span

__all__ = ["compose", "compose_sections"]

_KEY = re.compile(r"([A-Za-z][\w.-]*):(?:\s|$)")
_UNDIVIDED = re.compile(r"^(?:---|\.\.\.|%)|(?:^|[\s\[{,])[&*]\w", re.MULTILINE)
"""Documents, directives, anchors and aliases: a part of such a text means something else than in the whole."""

_SIGNS = {"flow sequence": "bracket [", "flow mapping": "brace {", "quoted scalar": "quotation mark"}
"""What the YAML library calls the texts between two signs, and the first of the signs."""

_Report: TypeAlias = tuple[Span | None, str, str, str]
"""A problem: its place, its code, a message and a hint."""


def compose(document: Document, text: str) -> YamlNode | None:
    """The graph of the text, None if it is empty. Raises ConfigErrors for a syntax error."""
    try:
        return _compose(text)
    except YAMLError as error:
        span, code, message, hint = _describe(document, error)
        raise document.fatal_error(span, code, message, hint=hint) from None


def compose_sections(document: Document, text: str) -> dict[str, YamlNode | None]:
    """The graph of each section of a text that has a syntax error, None for a broken section, of which the document
    gets the problem. Empty if the text has no sections, or none without an error."""
    sections: dict[str, YamlNode | None] = {}
    reports: list[_Report] = []
    for name, section in _split(text):
        try:
            sections[name] = _compose(section)
        except YAMLError as error:
            sections[name] = None
            reports.append(_describe(document, error))
    if not reports or not any(sections.values()):
        return {}
    for span, code, message, hint in reports:
        document.add_problem((), code, message, hint=hint, span=span)
    return sections


def _compose(text: str) -> YamlNode | None:
    graph: YamlNode | None = YAML(typ="rt", pure=True).compose(StringIO(text))
    return graph


def _split(text: str) -> Iterator[tuple[str, str]]:
    """Each section: its key, and the text with all other lines empty, so that positions stay as they are."""
    lines = text.splitlines()
    starts = [(number, match[1]) for number, line in enumerate(lines) if (match := _KEY.match(line))]
    if _UNDIVIDED.search(text) or len({name for _, name in starts}) < len(starts):
        return
    ends = [*(number for number, _ in starts[1:]), len(lines)]
    for (start, name), end in zip(starts, ends, strict=False):  # without a start there is an end all the same
        yield name, "\n" * start + "\n".join(lines[start:end])


def _describe(document: Document, error: YAMLError) -> _Report:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if not isinstance(error, MarkedYAMLError) or mark is None:
        return None, "syntax", mask_secrets(str(error).splitlines()[0]), ""
    if unclosed := _find_unclosed(error):
        return unclosed
    span = Span(mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)
    line = document.lines[mark.line] if mark.line < len(document.lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or line[mark.column : mark.column + 1] == "\t":
        return span, "tab", "tabs cannot indent YAML", "use spaces"
    message = mask_secrets(str(error.problem))
    if "another document" in message:
        return span, "syntax", "a second document begins here; a configuration is one document", ""
    if "expected <block end>" in message:
        return span, "syntax", "this line is not indented like the lines that it belongs to", ""
    if error.context and error.context_mark:
        message += f", {error.context} that begins on line {error.context_mark.line + 1}"
    return span, "syntax", message, _suggest_fix(line, line[mark.column :], message)


def _find_unclosed(error: MarkedYAMLError) -> _Report | None:
    """What to say of a bracket or a quotation mark that is not closed on the lines after it."""
    opened, found = error.context_mark, error.problem_mark
    sign = next((sign for words, sign in _SIGNS.items() if words in str(error.context)), None)
    ended = "stream end" in str(error.problem) or "end of stream" in str(error.problem)
    if sign is None or opened is None or found is None or (found.line == opened.line and not ended):
        return None
    message = f"this {sign} is never closed" if ended else f"this {sign} is not closed before line {found.line + 1}"
    hint = "" if ended else "if it is closed later, a comma is missing"
    return Span(opened.line + 1, opened.column + 1, opened.line + 1, opened.column + 2), "syntax", message, hint


def _suggest_fix(line: str, rest: str, message: str) -> str:
    if "flow mapping" in message and "${" in line:
        return 'inside { } a variable needs quotes: "${NAME}"'
    first = "*" if "alias" in message else rest[:1]
    if first in ("*", "@", "%", "`", "&", "!"):
        return f"put a text that begins with {first} into quotes"
    if "mapping values are not allowed" in message:
        return "is this line indented as the one above? A text with a colon in it needs quotes"
    return ""
