"""A conversation in the terminal, line by line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import monotonic

from dragoman.proxy.cli.terminal import remove_controls

from .client import ChatClient, ChatError, Message

__all__ = ["choose_model", "converse", "format_timing", "print_answer"]

_HELP = "/model shows the models, /model NAME changes to one, /new forgets the conversation, /quit ends"


def choose_model(client: ChatClient) -> str:
    """The only model of the server, else its default, else the first that it lists. Raises ChatError."""
    names = client.fetch_models()
    if not names:
        raise ChatError("the server lists no model; name one with --model", 400)
    if len(names) == 1:
        return names[0]
    if (default := client.fetch_default_model()) is not None:
        return default
    first = remove_controls(names[0])
    print(f"{first}, the first of {len(names)} models (--model names another)", file=sys.stderr)
    return names[0]


def print_answer(client: ChatClient, model: str, messages: Sequence[Message]) -> str:
    """Print the answer as it arrives, and, on a terminal, how long it took. Returns it. Raises ChatError."""
    parts, times = [], [monotonic()]
    for text in client.stream_answer(model, messages):
        times.append(monotonic())
        print(remove_controls(text), end="", flush=True)
        parts.append(text)
    print(flush=True)
    if sys.stderr.isatty():
        print(format_timing(times, monotonic()), file=sys.stderr)
    return "".join(parts)


def format_timing(times: Sequence[float], end: float) -> str:
    """How long an answer took, from the times of the request, of each piece, and of the end, in seconds."""
    begin, *pieces = times
    whole = f"{end - begin:.2f} s"
    return f"  ({whole}, first text after {pieces[0] - begin:.2f} s)" if pieces else f"  ({whole}, no text)"


def converse(client: ChatClient, model: str) -> None:
    """Answer lines of the input until /quit or its end."""
    if sys.stdin.isatty():
        import readline  # noqa: F401  input() edits lines with it

        print(f"{remove_controls(model)} at {client.base_url}; {_HELP}; Ctrl-C stops an answer", file=sys.stderr)
    messages: list[Message] = []
    while (line := _read_line()) not in (None, "/quit"):
        command, _, argument = (line or "").partition(" ")
        if command == "/new":
            messages = []
        elif command == "/model":
            model = _change_model(client, model, argument.strip())
        elif line and line.startswith("/"):
            print(_HELP, file=sys.stderr)
        elif line:
            messages = _answer_line(client, model, messages, line)


def _change_model(client: ChatClient, model: str, wanted: str) -> str:
    """The model for further questions. Without a wanted one, the server's models are shown."""
    if wanted:
        return wanted
    try:
        for name in client.fetch_models():
            print(f"{'*' if name == model else ' '} {remove_controls(name)}", file=sys.stderr)
    except ChatError as error:
        print(f"error: {error}", file=sys.stderr)
    return model


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
