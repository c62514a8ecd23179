"""Substitution of `${NAME}`, `${NAME:-default}` and `${file:PATH}` in the texts of a configuration; `$${` means `${`.

A variable that is unset or empty has no value. Without a default that is an error, and all of them are reported.
Substitution happens once: a value that itself looks like a variable is not substituted again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dragoman.adapters.paths import Path as KeyPath

from .document import Document

__all__ = ["substitute_variables"]

_PIECE = re.compile(r"\$\$\{|\$\{([^}]*)\}|\$\{")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_BARE = re.compile(r"\$[A-Z_][A-Z0-9_]*")
_FORMS = "${NAME}, ${NAME:-default} or ${file:/run/secrets/name}; write $${ for a plain ${"
_MOST_BYTES = 64 * 1024


class _NoValueError(Exception):
    """A variable has no value: code, message and hint."""


def substitute_variables(document: Document, env: Mapping[str, str], folder: Path) -> None:
    """Substitute variables and files in every text of the document. Relative paths are relative to `folder`."""
    for path, node, text in list(document.list_texts()):
        if _BARE.fullmatch(text):
            message = f"{text} is plain text here"
            document.add_problem(path, "bad-variable", message, hint=f'did you mean "${{{text[1:]}}}"?')
            node.broken = True
        elif "${" in text:
            node.raw = text
            value = _substitute(document, path, text, env, folder)
            node.value, node.broken = (text, True) if value is None else (value, False)


def _substitute(document: Document, path: KeyPath, text: str, env: Mapping[str, str], folder: Path) -> str | None:
    """The text with its values, or None after a problem was added for each value that is missing."""
    parts, end, complete = [], 0, True
    for match in _PIECE.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        try:
            parts.append("${" if match[0] == "$${" else _look_up(document, match[1], env, folder))
        except _NoValueError as error:
            code, message, hint = error.args
            document.add_problem(path, code, message, expected=_FORMS if code == "bad-variable" else "", hint=hint)
            complete = False
    return "".join([*parts, text[end:]]) if complete else None


def _look_up(document: Document, inside: str | None, env: Mapping[str, str], folder: Path) -> str:
    if inside is None:
        raise _NoValueError("bad-variable", "a variable is not closed with }", "")
    if inside.startswith("file:"):
        document.files.append(folder / inside.removeprefix("file:"))
        return _read_file(document.files[-1])
    match = _NAME.fullmatch(inside)
    if match is None:
        raise _NoValueError("bad-variable", "this is not the name of a variable", "")
    name, default = match.groups()
    value = env.get(name) or default
    if value is None:
        state = "set, but empty" if name in env else "not set"
        hint = "set it in the environment, or in a file .env next to this one"
        raise _NoValueError("unset-variable", f"the variable {name} is {state}", hint)
    return value


def _read_file(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise _NoValueError("unreadable", f"cannot read {file}: {error.strerror}", "") from None
    except UnicodeDecodeError:
        raise _NoValueError("not-text", f"{file} is not UTF-8 text", "") from None
    if len(data) > _MOST_BYTES:
        raise _NoValueError("too-large", f"{file} is larger than 64 KiB", "")
    return text.rstrip("\r\n")
