"""Measures the time from the start of dragoman to its first answer.

    uv run python bench/start.py [--rounds 7] [--as-is]

Runs a fake provider, and in each round starts `dragoman serve` in front of it, sends two chat requests and stops it.
Three more commands measure parts of the start: an interpreter that does nothing, one that loads the command line, and
`dragoman check`, which reads the same configuration. Everything runs on 127.0.0.1.

A first round, which is not counted, writes Python's bytecode to a temporary folder, as the first start after an
installation writes it next to the modules. With --as-is, the environment decides where bytecode is kept, if at all.
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

from _processes import run_process

__all__: list[str] = []

GOAL = 0.6  # seconds from the start to the first answer
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
    """The seconds of each round, by the clock and of processor time."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="number of rounds, 1 to 100 (default 7)")
    parser.add_argument("--as-is", action="store_true", help="keep bytecode where the environment says, if at all")
    options = parser.parse_args()
    rounds: int = options.rounds
    if not 1 <= rounds <= 100:
        parser.error("--rounds must be between 1 and 100")
    if not (DRAGOMAN.exists() and Path("/proc/self/stat").exists()):
        sys.exit("bench/start.py needs Linux, and dragoman in the environment of the Python that runs it")
    rows = {name: Row() for name in ROWS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not options.as_is:
            os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        fake, provider = stack.enter_context(start_server([str(DRAGOMAN), "fake", "openai"], folder))
        if provider is None:
            sys.exit(f"the fake provider does not start (status {fake.poll()})")
        config = write_config(folder, provider)
        run_round({name: Row() for name in ROWS}, config, folder)
        for _ in range(rounds):
            run_round(rows, config, folder)
    report(rows, options)


def write_config(folder: Path, provider: str) -> Path:
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


def run_round(rows: dict[str, Row], config: Path, folder: Path) -> None:
    python = [sys.executable, "-c"]
    measure_command(rows[NOTHING], [*python, "pass"])
    measure_command(rows[LOADED], [*python, "import dragoman.proxy.cli.main"])
    measure_command(rows[CHECKED], [str(DRAGOMAN), "check", str(config)])
    started = time.perf_counter()
    with start_server([str(DRAGOMAN), "serve", "--config", str(config)], folder) as (process, url):
        if url is None:
            sys.exit(f"`dragoman serve` does not start (status {process.poll()})")
        record_times(rows[LISTENS], started, process.pid)
        send_request(url)
        record_times(rows[FIRST], started, process.pid)
        used, began = read_cpu(process.pid), time.perf_counter()
        send_request(url)
        rows[SECOND].wall.append(time.perf_counter() - began)
        rows[SECOND].cpu.append(read_cpu(process.pid) - used)


def measure_command(row: Row, command: Sequence[str]) -> None:
    """Run a command to its end and record its times."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
    row.wall.append(time.perf_counter() - started)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    row.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@contextmanager
def start_server(command: Sequence[str], folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str | None]]:
    """Start a server; yield its process and the address that it prints, None if it prints none. Stop it at exit."""
    with run_process(command, folder / "log") as process:
        yield process, find_address(process, folder / "log")


def find_address(process: subprocess.Popen[bytes], log: Path) -> str | None:
    """Find the address in the log. Return None if the process ends first, or after 30 s."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        if found := ADDRESS.search(log.read_text("utf-8")):
            return found[0]
        time.sleep(0.002)
    return None


def send_request(url: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request("POST", "/v1/chat/completions", REQUEST, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != 200 or not json.loads(text)["choices"]:
        sys.exit(f"a wrong answer, status {answer.status}: {text[:300]!r}")


def record_times(row: Row, started: float, pid: int) -> None:
    row.wall.append(time.perf_counter() - started)
    row.cpu.append(read_cpu(pid))


def read_cpu(pid: int) -> float:
    """Read the processor time of the process and its threads so far, user and system, in seconds."""
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
    print(f"\nThe goal, the first answer in less than {GOAL:g} s (median): {verdict}.")


if __name__ == "__main__":
    main()
