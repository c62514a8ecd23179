"""From the start of the process to its first answer: `uv run python bench/start.py [--rounds 7] [--as-is]`.

Runs a fake provider, and a number of times `dragoman serve` over it, which answers two chat requests and is stopped.
What comes before the server listens is told apart by commands that go a part of the same way: an interpreter that does
nothing, one that loads the command line, and `dragoman check`, which reads the same file. All of it is on 127.0.0.1.

A round that is not counted comes first: it leaves Python's bytecode in a temporary folder, as the first start after an
installation leaves it beside the modules. With --as-is Python keeps bytecode as the environment says, or keeps none.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from _processes import running

__all__: list[str] = []

GOAL = 1.0  # seconds from the start to the first answer
DRAGOMAN = Path(sys.executable).with_name("dragoman")
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
REQUEST = json.dumps({"model": "fast", "messages": [{"role": "user", "content": "Hello"}]})
ROWS = (
    "an interpreter that does nothing",
    "the command line is loaded",
    "the configuration is read (check)",
    "the server listens",
    "the first answer",
    "the second answer alone",
)
NOTHING, LOADED, CHECKED, LISTENS, FIRST, SECOND = ROWS


class Row:
    """Of each round the seconds that went by and, where they can be told, those of the processor."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="how often to start it, 1 to 100 (default 7)")
    parser.add_argument("--as-is", action="store_true", help="leave it to the environment where bytecode is kept")
    options = parser.parse_args()
    rounds: int = options.rounds
    if not 1 <= rounds <= 100:
        parser.error("--rounds must be between 1 and 100")
    if not (DRAGOMAN.exists() and Path("/proc/self/stat").exists()):
        sys.exit("bench/start.py needs Linux, and dragoman installed beside the Python that runs it")
    rows = {name: Row() for name in ROWS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not options.as_is:
            os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        fake, provider = stack.enter_context(listening([str(DRAGOMAN), "fake", "openai"], folder))
        if provider is None:
            sys.exit(f"the fake provider does not start (status {fake.poll()})")
        config = written(folder, provider)
        one_round({name: Row() for name in ROWS}, config, folder)
        for _ in range(rounds):
            one_round(rows, config, folder)
    report(rows, options)


def written(folder: Path, provider: str) -> Path:
    file = folder / "dragoman.yaml"
    file.write_text(f"""\
server: {{host: 127.0.0.1, port: 0}}
store: {{path: responses.db}}
providers:
  fake: {{dialect: openai, base_url: "{provider}/v1", api_key: bench}}
models:
  fast: {{targets: [{{provider: fake}}]}}
""")
    return file


def one_round(rows: dict[str, Row], config: Path, folder: Path) -> None:
    python = [sys.executable, "-c"]
    ended(rows[NOTHING], [*python, "pass"])
    ended(rows[LOADED], [*python, "import dragoman.proxy.cli.main"])
    ended(rows[CHECKED], [str(DRAGOMAN), "check", str(config)])
    started = time.perf_counter()
    with listening([str(DRAGOMAN), "serve", "--config", str(config)], folder) as (process, url):
        if url is None:
            sys.exit(f"`dragoman serve` does not start (status {process.poll()})")
        told(rows[LISTENS], started, process.pid)
        ask(url)
        told(rows[FIRST], started, process.pid)
        used, began = cpu(process.pid), time.perf_counter()
        ask(url)
        rows[SECOND].wall.append(time.perf_counter() - began)
        rows[SECOND].cpu.append(cpu(process.pid) - used)


def ended(row: Row, command: Sequence[str]) -> None:
    """Run the command to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
    row.wall.append(time.perf_counter() - started)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    row.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@contextmanager
def listening(command: Sequence[str], folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str | None]]:
    """The command as a process and the address that it names, as soon as it does; ended on the way out."""
    with running(command, folder / "said") as process:
        yield process, address(process, folder / "said")


def address(process: subprocess.Popen[bytes], said: Path) -> str | None:
    """None where the process ended first, or 30 s have passed."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        if found := ADDRESS.search(said.read_text("utf-8")):
            return found[0]
        time.sleep(0.002)
    return None


def ask(url: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request("POST", "/v1/chat/completions", REQUEST, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != 200 or not json.loads(text)["choices"]:
        sys.exit(f"a wrong answer, status {answer.status}: {text[:300]!r}")


def told(row: Row, started: float, pid: int) -> None:
    row.wall.append(time.perf_counter() - started)
    row.cpu.append(cpu(pid))


def cpu(pid: int) -> float:
    """Seconds of the processor, user and system, that the process and its threads have used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(rows: dict[str, Row], options: argparse.Namespace) -> None:
    kind = "as the environment is" if options.as_is else "with bytecode"
    machine = f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{options.rounds} rounds {kind}; {machine}; milliseconds\n")
    print(f"  {'since the process began':36}{'median':>9}{'best':>9}{'CPU median':>13}{'CPU best':>11}")
    for name, row in rows.items():
        cells = (statistics.median(row.wall), min(row.wall), statistics.median(row.cpu), min(row.cpu))
        shown = "".join(f"{cell * 1000:>{width}.0f}" for cell, width in zip(cells, (9, 9, 13, 11), strict=True))
        print(f"  {name:36}{shown}")
    verdict = "met" if statistics.median(rows[FIRST].wall) < GOAL else "missed"
    print(f"\nThe goal, the first answer in less than {GOAL:.0f} s (median): {verdict}.")


if __name__ == "__main__":
    main()
