import pathlib
import subprocess
from checks import *

pathlib.Path("note.py").write_text("age = 1\n")
EDIT = "note.py\n<<<<<<< SEARCH\nage = 1\n=======\nage = 2\n>>>>>>> REPLACE\n"


def ask(text, *words):
    options = ["--no-git", "--yes-always", "--no-check-update", "--no-analytics", "--no-show-model-warnings"]
    own = ["--openai-api-base", BASE_URL, "--openai-api-key", API_KEY, "--model", f"openai/{MODEL}"]
    command = ["aider", *options, *own, "--map-tokens", "0", "--no-auto-lint", "--no-pretty", *words, "--message", text]
    done = subprocess.run(command, capture_output=True, text=True)
    return " ".join((done.stdout + done.stderr).split())


@check("chat")
def _():
    contains(ask("Hello", "--no-stream"), SENTENCE)


@check("stream")
def _():
    contains(ask("Hello"), SENTENCE)


@check("agent")
def _():
    shown = ask(f"fake:text(say={EDIT})", "--edit-format", "diff", "note.py")
    assert pathlib.Path("note.py").read_text() == "age = 2\n", shown


@check("errors")
def _():
    contains(ask(FAILING, "--no-stream"), FAILURE)
