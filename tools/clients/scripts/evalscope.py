import json
import pathlib
import shutil
import subprocess
from checks import *


def measure(path, *words):
    common = ["--url", BASE_URL + path, "--api-key", API_KEY, "--model", MODEL, "--number", "3", "--parallel", "1"]
    more = ["--outputs-dir", "out", "--no-timestamp", "--dataset", "line_by_line", "--dataset-path", "prompts.txt"]
    pathlib.Path("prompts.txt").write_text("Hello\nHello again\nGood evening\n")
    done = subprocess.run(["evalscope", "perf", *common, *more, *words], capture_output=True, text=True)
    (found,) = list(pathlib.Path("out").rglob("benchmark_summary.json")) or [None]
    assert found, (done.stdout + done.stderr)[-500:]
    summary = json.loads(found.read_text())
    text = json.dumps(summary)
    shutil.rmtree("out")
    assert summary.get("Succeed requests", summary.get("Success Requests")) == 3, text
    return summary


@check("chat")
def _():
    measure("/chat/completions", "--no-stream")


@check("stream")
def _():
    measure("/chat/completions", "--stream")
