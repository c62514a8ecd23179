"""A conversation in the terminal, line by line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .client import ChatClient, ChatError, Message

__all__ = ["converse", "fetch_first_model", "print_answer"]

_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
"""Characters that a terminal would obey instead of showing."""

_HELP = "/new forgets the conversation, /quit ends; Ctrl-C stops an answer"


def fetch_first_model(client: ChatClient) -> str:
    """The first model that the server lists. Raises ChatError."""
    names = client.fetch_models()
    if not names:
        raise ChatError("the server lists no model; name one with --model")
    return names[0]


def print_answer(client: ChatClient, model: str, messages: Sequence[Message]) -> str:
    """Print the answer as it arrives, and return it. Raises ChatError."""
    parts = []
    for text in client.stream_answer(model, messages):
        print(text.translate(_CONTROLS), end="", flush=True)
        parts.append(text)
    print(flush=True)
    return "".join(parts)


def converse(client: ChatClient, model: str) -> None:
    """Answer lines of the input until /quit or its end."""
    if sys.stdin.isatty():
        import readline  # noqa: F401  input() edits lines with it

        print(f"{model} at {client.base_url}; {_HELP}", file=sys.stderr)
    messages: list[Message] = []
    while (line := _read_line()) not in (None, "/quit"):
        if line == "/new":
            messages = []
        elif line and line.startswith("/"):
            print(_HELP, file=sys.stderr)
        elif line:
            messages = _answer_line(client, model, messages, line)


def _read_line() -> str | None:
    """The next line of the input, without space around it; None at its end."""
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except (EOFError, KeyboardInterrupt):
        return None


def _answer_line(client: ChatClient, model: str, messages: list[Message], line: str) -> list[Message]:
    """Print the answer to the line, and return the conversation after it. An answer that fails or is interrupted leaves
    the conversation as it was."""
    following = [*messages, {"role": "user", "content": line}]
    try:
        answer = print_answer(client, model, following)
    except KeyboardInterrupt:
        print(" ...", file=sys.stderr)
    except ChatError as error:
        print(f"error: {error}", file=sys.stderr)
    else:
        return [*following, {"role": "assistant", "content": answer}]
    return messages
