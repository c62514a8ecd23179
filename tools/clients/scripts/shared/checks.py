"""What the scripts in Python share: the variables of a run, what a fake answers, and how a check is reported.

A fake provider answers `SENTENCE`. `TOOLS` in a message makes it call a tool, and repeat the tool's result afterwards;
`FAILING` makes it refuse, `BROKEN` fail in the middle of a stream; a requested JSON schema gets JSON that matches it.
"""

import inspect
import asyncio
import json
import os
import sys
import traceback

BASE_URL, ORIGIN, API_KEY, MODEL = (os.environ[name] for name in ("BASE_URL", "ORIGIN", "API_KEY", "MODEL"))
ROUTE = MODEL.removeprefix("over-")
SENTENCE = "The dragoman bows to both courts: “grüß Gott, καλημέρα, 你好 👋🏽” – and the talks begin."
TOOLS = 'What is the weather in Rome? fake:tools(name=get_weather, arguments={"city": "Rome"})'
RESULT = "22 degrees in Rome"
FAILURE = "The moon is full"
FAILING = f"Hello fake:status-400(message={FAILURE})"
BREAKDOWN = "failed on purpose"
BROKEN = "Hello fake:error-event"
WEATHER_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Weather of a city", "parameters": WEATHER_SCHEMA}
WEATHER_TOOL = {"type": "function", "function": WEATHER}

__all__ = [
    *("API_KEY", "BASE_URL", "BREAKDOWN", "BROKEN", "FAILING", "FAILURE", "MODEL", "ORIGIN", "RESULT", "ROUTE"),
    *("SENTENCE", "TOOLS"),
    *("WEATHER", "WEATHER_SCHEMA", "WEATHER_TOOL", "check", "contains", "equal", "raises_text", "report", "user"),
]


def user(text):
    return [{"role": "user", "content": text}]


def check(name):
    """Run the function at once, and print whether it raises; it may be a coroutine function."""

    def run(function):
        try:
            done = function()
            if inspect.isawaitable(done):
                asyncio.run(done)
        except BaseException as error:  # whatever a client raises is the reason
            report(name, False, f"{type(error).__name__}: {error}" + find_line(error))
        else:
            report(name, True)

    return run


def report(name, passed, reason=""):
    sys.stdout.write("\n" + json.dumps({"check": name, "passed": passed, "reason": reason}) + "\n")
    sys.stdout.flush()


def find_line(error):
    """The line of the script that fails if an expectation is not met."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].line})" if isinstance(error, AssertionError) and frames and not str(error) else ""


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def contains(text, part):
    assert part in str(text), f"no {part!r} in {text!r}"


def raises_text(call, *parts):
    """The client raises, and its user sees our message."""
    try:
        found = call()
    except Exception as error:
        shown = f"{error} {error!r}"
    else:
        raise AssertionError(f"no exception but {found!r}")
    for part in parts:
        contains(shown, part)
