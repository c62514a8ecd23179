"""Measures what stands between clients and the provider: one row for each, and for each case a list of results."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from _cases import CASES, EVENTS, PACE, REPLY, Case, build_request
from _load import read_cpu_ns
from _native import build_program
from _processes import free_port, run_process, wait_until_listening

__all__ = [
    "Cores",
    "Result",
    "Row",
    "compare_rows",
    "dragoman_config",
    "list_load_command",
    "list_ratios",
    "measure_case",
    "measure_growth",
    "read_memory_mb",
    "run_provider",
    "script_command",
    "send_requests",
    "split_cores",
    "wait_until_idle",
]

HERE = Path(__file__).parent
Result = dict[str, Any]
"""What the load generator printed, with `cpu_us` of the row's process for each unit, `per_second`, `load_busy` and
`provider_busy`: the shares of a core that the load generator and the provider used."""

_ENDS = {"chat": "[DONE]", "responses": "response.completed", "messages": "message_stop"}
_WARM_UP = 0.3  # seconds; streams need as long as one of them takes
_QUIET = 0.02  # of a core, with which a process counts as idle


@dataclass
class Row:
    """One way from clients to the provider. `process` is the proxy, None without one. `client` is the protocol of the
    clients, if it is not that of the case. A row with a note is not measured any more. `figures` are those of the
    process: `start_s`, `idle_mb`, `after_mb`, `growth_percent`."""

    name: str
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    cases: tuple[str, ...] = tuple(CASES)
    note: str = ""
    client: str = ""
    warm_up: float = _WARM_UP
    results: dict[str, list[Result]] = field(default_factory=lambda: {case: [] for case in CASES})
    figures: dict[str, list[float]] = field(default_factory=dict)

    def fit_case(self, name: str) -> Case:
        """The case, for clients of this row."""
        return replace(CASES[name], client=self.client) if self.client else CASES[name]

    def median(self, case: str, key: str) -> float | None:
        found = [result[key] for result in self.results[case] if result.get(key) is not None]
        return statistics.median(found) if found else None


@dataclass(frozen=True, slots=True)
class Cores:
    """The cores of the proxy, of the load generator and of the provider: three different ones, if there are as many."""

    proxy: set[int]
    load: set[int]
    provider: set[int]


def split_cores() -> Cores:
    first, *rest = sorted(os.sched_getaffinity(0))
    others = rest or [first]
    return Cores({first}, {others[0]}, set(others[1:]) or {others[0]})


def compare_rows(row: Row, base: Row, case: str) -> float | None:
    """The median of the rounds' ratios of processor time."""
    found = list_ratios(row, base, case)
    return statistics.median(found) if found else None


def list_ratios(row: Row, base: Row, case: str) -> list[float]:
    """Each round's ratio of processor time. Two measurements of a round have the same conditions."""
    costs = {one["round"]: one["cpu_us"] for one in base.results[case]}
    pairs = [(one["cpu_us"], costs.get(one["round"])) for one in row.results[case]]
    return [cost / other for cost, other in pairs if cost and other]


def script_command(name: str, *words: object) -> list[str]:
    return [sys.executable, str(HERE / name), *map(str, words)]


@contextmanager
def run_provider(cores: Cores) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run the provider; yield its port and its process."""
    port = free_port()
    native = build_program("provider")
    command = (
        [native, str(port), str(EVENTS), str(round(PACE * 1e6))] if native else script_command("_upstream.py", port)
    )
    with run_process(command, cores=cores.provider) as process:
        if not wait_until_listening(port, process):
            sys.exit(f"the provider does not start: {' '.join(command)}")
        yield port, process


def dragoman_config(dialect: str, base_url: str, port: int, store: str = "{kind: none}") -> str:
    """The configuration of dragoman in front of the provider, which speaks chat."""
    names = sorted({case.workload for case in CASES.values()})
    models = "".join(f"  bench-{one}: {{targets: [{{provider: upstream, model: bench-{one}}}]}}\n" for one in names)
    return f"""\
server: {{host: 127.0.0.1, port: {port}}}
store: {store}
providers:
  upstream: {{dialect: {dialect}, base_url: "{base_url}", api_key: bench}}
models:
{models}"""


def measure_case(
    row: Row, name: str, seconds: float, provider: subprocess.Popen[bytes] | None = None, mark: str = ""
) -> None:
    """Measure a case once. If an answer is wrong, or none comes, the row gets a note. `mark` names the round."""
    if row.note or (CASES[name].rate and build_program("load") is None):
        return
    case = row.fit_case(name)
    pids = [word for one in (row.process, provider) if one for word in ("--pid", str(one.pid))]
    command = [*list_load_command(row, case, seconds), *pids]
    result = run_load(row, name, case, command, seconds + row.warm_up)
    if result:
        result["round"] = mark or str(len(row.results[name]))
        row.results[name].append(complete_result(result, case, has_process=row.process is not None))


def list_load_command(row: Row, case: Case, seconds: float) -> list[str]:
    """The command that lets the load generator measure a case."""
    options: dict[str, object] = {"connections": case.connections, "seconds": seconds, "warm-up": row.warm_up}
    options["needle"] = _ENDS[case.client] if case.is_stream else REPLY
    if case.is_stream:
        options["events"] = EVENTS
    if case.workload == "paced":  # streams begin evenly distributed over the time of one, and all of them are warm
        options |= {"spread": EVENTS * PACE, "warm-up": max(row.warm_up, EVENTS * PACE)}
    if case.rate:
        options["rate"] = case.rate
    return _command_load(row.port, options)


def _command_load(port: int, options: Mapping[str, object]) -> list[str]:
    native = build_program("load")
    words = (word for name, value in options.items() for word in (f"--{name}", str(value)))
    return [*([native] if native else script_command("_load.py")), str(port), *words]


def measure_growth(row: Row, warm: int, count: int) -> None:
    """Measure how much more memory a process has after `count` requests than after `warm`, in percent."""
    sizes = []
    for answers in (warm, count):
        send_requests(row, answers)
        if row.note or row.process is None:
            return
        sizes.append(read_memory_mb(row.process.pid))
    row.figures.setdefault("growth_percent", []).append(100 * (sizes[1] / sizes[0] - 1))


def send_requests(row: Row, count: int) -> None:
    """Send so many requests of 4 KB. Note what is wrong in the row."""
    case = CASES["whole"]
    options = {"connections": case.connections, "answers": count, "needle": REPLY}
    if not row.note:
        run_load(row, f"{count} requests", case, _command_load(row.port, options), count / 10)


def run_load(row: Row, name: str, case: Case, command: Sequence[str], seconds: float) -> Result | None:
    """Run the load generator, and wait for what the process does afterwards. Note what is wrong in the row."""
    run = subprocess.run(command, input=build_request(row.port, case), capture_output=True, timeout=seconds + 120)
    if run.returncode:
        row.note = f"{name}: the load generator failed: {run.stderr[-600:].decode(errors='replace')}"
        return None
    result: Result = json.loads(run.stdout)
    if result["errors"]:
        row.note = f"{name}: {result['errors']} wrong answers, the first: {result['error']}"
        return None
    if row.process:
        wait_until_idle(row.process)
    return result


def complete_result(result: Result, case: Case, *, has_process: bool) -> Result:
    """Add what follows from the counts of the load generator."""
    units = result["tokens"] if case.is_stream else result["answers"]
    spent, window = result["cpu_ns"], result["seconds"]
    return result | {
        "cpu_us": spent[0] / 1000 / units if has_process and units else None,
        "per_second": units / window,
        "load_busy": result["own_cpu_ns"] / 1e9 / window,
        "provider_busy": spent[-1] / 1e9 / window if len(spent) > has_process else None,
    }


def wait_until_idle(process: subprocess.Popen[bytes], seconds: float = 3.0) -> None:
    """Wait until a process has ended what was left of a measurement, at most for some seconds."""
    deadline = time.monotonic() + seconds
    pause = 0.03
    used = read_cpu_ns(process.pid)
    while time.monotonic() < deadline:
        time.sleep(pause)
        before, used = used, read_cpu_ns(process.pid)
        if (used - before) / 1e9 < _QUIET * pause:
            return


def read_memory_mb(pid: int) -> float:
    """The resident memory of a process and its descendants."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    total = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024 / 1e6
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += sum(read_memory_mb(int(child)) for child in (task / "children").read_text().split())
    return total
