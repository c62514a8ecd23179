import json
import os
import pathlib
import subprocess
from checks import *

folder = pathlib.Path.home() / "llm"
folder.mkdir()
row = f"- model_id: own\n  model_name: {MODEL}\n  api_base: {BASE_URL}\n  api_key_name: own\n  supports_tools: true\n"
(folder / "extra-openai-models.yaml").write_text(row + "  supports_schema: true\n")
(folder / "keys.json").write_text(json.dumps({"own": API_KEY}))
(folder / "tool.py").write_text(f'def get_weather(city: str) -> str:\n    "Weather of a city"\n    return {RESULT!r}\n')


def run(*words):
    own = {**os.environ, "LLM_USER_PATH": str(folder)}
    done = subprocess.run(["llm", *words], capture_output=True, text=True, env=own)
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout.strip()


def ask(*words):
    return run("-m", "own", *words)


@check("chat")
def _():
    equal(ask("--no-stream", "Hello"), SENTENCE)


@check("stream")
def _():
    equal(ask("Hello"), SENTENCE)


@check("usage in streams")
def _():
    ask("Hello")
    assert json.loads(run("logs", "-n", "1", "--json"))[0]["output_tokens"]


@check("tools")
def _():
    contains(ask("--no-stream", "--functions", str(folder / "tool.py"), TOOLS), RESULT)


@check("streamed tools")
def _():
    contains(ask("--functions", str(folder / "tool.py"), TOOLS), RESULT)


@check("structured output")
def _():
    assert json.loads(ask("--no-stream", "--schema", json.dumps(WEATHER_SCHEMA), "Name a city."))["city"]


@check("errors")
def _():
    raises_text(lambda: ask("--no-stream", FAILING), FAILURE)


@check("errors in streams")
def _():
    raises_text(lambda: ask(BROKEN), BREAKDOWN)
