"""`${NAME}`, `${NAME:-default}` and `${file:PATH}` in the texts of a configuration; `$${` stands for `${`.

A variable that is unset, or set to nothing, has no value: without a default that is an error, reported for all at once.
Values are put in once: what looks like a variable inside a value stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dragoman.adapters.paths import Path as KeyPath

from .document import Document

__all__ = ["put_in"]

_PIECE = re.compile(r"\$\$\{|\$\{([^}]*)\}|\$\{")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_BARE = re.compile(r"\$[A-Z_][A-Z0-9_]*")
_FORMS = "${NAME}, ${NAME:-default} or ${file:/run/secrets/name}; write $${ for a plain ${"
_MOST_BYTES = 64 * 1024


class _Missing(Exception):
    """There is no value to put in: code, message and hint."""


def put_in(document: Document, env: Mapping[str, str], folder: Path) -> None:
    """Put the values of variables and files into every text of the document. Relative paths begin at `folder`."""
    for path, node, text in list(document.texts()):
        if _BARE.fullmatch(text):
            message = f"{text} is plain text here"
            document.add(path, "bad-variable", message, hint=f'did you mean "${{{text[1:]}}}"?')
            node.broken = True
        elif "${" in text:
            node.raw = text
            value = _filled(document, path, text, env, folder)
            node.value, node.broken = (text, True) if value is None else (value, False)


def _filled(document: Document, path: KeyPath, text: str, env: Mapping[str, str], folder: Path) -> str | None:
    """The text with its values, or None where one is missing; each missing one is reported."""
    parts, end, complete = [], 0, True
    for found in _PIECE.finditer(text):
        parts.append(text[end : found.start()])
        end = found.end()
        try:
            parts.append("${" if found[0] == "$${" else _value(found[1], env, folder))
        except _Missing as missing:
            code, message, hint = missing.args
            document.add(path, code, message, expected=_FORMS if code == "bad-variable" else "", hint=hint)
            complete = False
    return "".join([*parts, text[end:]]) if complete else None


def _value(inside: str | None, env: Mapping[str, str], folder: Path) -> str:
    if inside is None:
        raise _Missing("bad-variable", "a variable is not closed with }", "")
    if inside.startswith("file:"):
        return _content(folder / inside.removeprefix("file:"))
    found = _NAME.fullmatch(inside)
    if found is None:
        raise _Missing("bad-variable", "this is no variable's name", "")
    name, default = found.groups()
    value = env.get(name) or default
    if value is None:
        state = "set, but empty" if name in env else "not set"
        hint = "set it in the environment, or in a file given with --env-file"
        raise _Missing("unset-variable", f"the variable {name} is {state}", hint)
    return value


def _content(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise _Missing("unreadable", f"cannot read {file}: {error.strerror}", "") from None
    except UnicodeDecodeError:
        raise _Missing("not-text", f"{file} is not UTF-8 text", "") from None
    if len(data) > _MOST_BYTES:
        raise _Missing("too-large", f"{file} is larger than 64 KiB", "")
    return text.rstrip("\r\n")
