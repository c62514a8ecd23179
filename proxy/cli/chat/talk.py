"""A conversation, line by line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .client import ChatClient, ChatError, Message

__all__ = ["converse", "first_model", "say"]

_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
"""What a terminal would obey instead of showing."""

_HELP = "/new forgets what was said, /quit ends; Ctrl-C stops an answer"


def first_model(client: ChatClient) -> str:
    """Raises ChatError."""
    names = client.models()
    if not names:
        raise ChatError("the server lists no model; name one with --model")
    return names[0]


def say(client: ChatClient, model: str, messages: Sequence[Message]) -> str:
    """Print the answer as it comes. Raises ChatError."""
    parts = []
    for text in client.ask(model, messages):
        print(text.translate(_CONTROLS), end="", flush=True)
        parts.append(text)
    print(flush=True)
    return "".join(parts)


def converse(client: ChatClient, model: str) -> None:
    """Until /quit, or the end of the input."""
    if sys.stdin.isatty():
        import readline  # noqa: F401  input() edits lines with it

        print(f"{model} at {client.base_url}; {_HELP}", file=sys.stderr)
    messages: list[Message] = []
    while (line := _line()) not in (None, "/quit"):
        if line == "/new":
            messages = []
        elif line and line.startswith("/"):
            print(_HELP, file=sys.stderr)
        elif line:
            messages = _after(client, model, messages, line)


def _line() -> str | None:
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except (EOFError, KeyboardInterrupt):
        return None


def _after(client: ChatClient, model: str, messages: list[Message], line: str) -> list[Message]:
    """The conversation after this line. What fails or is stopped is no part of it."""
    asked = [*messages, {"role": "user", "content": line}]
    try:
        answer = say(client, model, asked)
    except KeyboardInterrupt:
        print(" ...", file=sys.stderr)
    except ChatError as error:
        print(f"error: {error}", file=sys.stderr)
    else:
        return [*asked, {"role": "assistant", "content": answer}]
    return messages
