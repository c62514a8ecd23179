"""Measures what hostile request bodies do to a running proxy and to its other clients.

    uv run python -m bench.hostile_bodies [--bodies 10000] [--realtime]

Starts fake providers, `dragoman serve` in front of them, and two neighbors: one asks for /live every 2 ms, one sends
small chat requests to a provider that gets no hostile ones. Twenty times, one phase after the other, so that a machine
that is slower for a while is slower for all of them,

- the neighbors are alone;
- one client sends the bodies of tools/hostile_bodies.py, up to the proxy's default limits, one after the other to a
  server that reads them and does nothing else: this is what making and sending them costs the machine;
- it sends a twentieth of them to the proxy. Each answer is checked: a success, or an error of the client's dialect with
  a status below 500.

Linux only: it reads /proc.

`--realtime`, which root may use, runs the proxy, the providers and the neighbors before all other programs (SCHED_RR),
but not whoever sends the bodies, nor the process that judges them. So other load on the machine hardly counts.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from itertools import islice
from pathlib import Path

import orjson

from bench._processes import REALTIME, free_port, run_first, run_process, wait_until_listening
from dragoman.adapters.call import Call, Target
from dragoman.adapters.faults import Fault
from dragoman.adapters.json_structure import VALUE_LIMIT
from dragoman.adapters.pipeline import Pipeline, TargetPlan, plan_target
from dragoman.adapters.registry import NAMES, dialects
from dragoman.adapters.routes import RouteTable
from dragoman.adapters.validation import load_validator
from dragoman.proxy.exchange.large_bodies import SWITCH
from tools.hostile_bodies import Hostile, draw_bodies

__all__: list[str] = []

HERE = Path(__file__).parent
DRAGOMAN = str(Path(sys.executable).with_name("dragoman"))
NEIGHBOR = "neighbor"  # its provider
BODY_LIMIT = 32 * 1024 * 1024
ROUNDS = 20
ALONE = 2.0  # seconds of a round in which the neighbors are alone
BESIDE = 3.0  # seconds of a round in which another server gets the bodies
HOLDS = 2_000  # bodies whose processor time without a pause is measured
SHOWN = 12
WARM_UP = 300  # small bodies

Answers = list[tuple[float, float]]
"""When each answer was asked for, and how long it took; in seconds."""


Span = tuple[float, float]
"""When a phase began and ended, in seconds."""


@dataclass
class Attack:
    """What the bodies got: the times of each, and the wrong answers. `peak` is the most memory of the proxy, in KiB."""

    peak: int = 0
    sent: list[tuple[float, float, Hostile]] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def main() -> None:
    options = parse_arguments()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port, process = start_proxy(stack, folder, options.realtime)
        warm_up(port)
        read = partial(read_neighbor, port, realtime=options.realtime)
        other = start_other(stack, folder)
        with read("live") as live, read("chat") as chat:
            time.sleep(1)
            before = read_memory(process.pid)
            attack, phases = run_rounds(port, other, process.pid, options)
        growth = (attack.peak - before) / 1024
        holds = measure_holds(options)
        for took, name in holds[:SHOWN]:
            print(f"  {took:6.1f} ms of processor time without a pause: {name}")
        meanwhile = select(live, phases["hostile"])
        report(attack, meanwhile)
        print(
            f"{len(attack.sent)} hostile bodies: longest loop block {1000 * max(took for _, took in meanwhile):.0f} ms "
            f"({holds[0][0]:.0f} ms of processor time), "
            f"RSS growth {growth:.0f} MB, wrong answers {len(attack.wrong)}, "
            f"p99 of /live {compare(live, phases)}, of chat {compare(chat, phases)}"
        )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bodies", type=int, default=10_000, help="how many bodies to send (default 10000)")
    parser.add_argument("--seed", type=int, default=1, help="which bodies (default 1)")
    parser.add_argument("--realtime", action="store_true", help=REALTIME)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two bodies (default 0)")
    return parser.parse_args()


def prefer(process: subprocess.Popen[bytes], realtime: bool) -> None:
    """Run a process that has just started before all others."""
    if realtime:
        run_first(process.pid)


def start_proxy(stack: ExitStack, folder: Path, realtime: bool) -> tuple[int, subprocess.Popen[bytes]]:
    providers, models = [], []
    for label, name in (*((name, name) for name in NAMES), (NEIGHBOR, "openai")):
        port = free_port()
        fake = run_process([DRAGOMAN, "fake", name, "--port", str(port)], folder / f"{label}.log")
        prefer(stack.enter_context(fake), realtime)
        wait_until_listening(port)
        root = json.loads(files("dragoman.adapters").joinpath(name, "fake.json").read_text("utf-8")).get("root", "")
        base = f"http://127.0.0.1:{port}{root}"
        providers.append(f'  {label}: {{dialect: {name}, base_url: "{base}", api_key: none}}')
        models.append(f"  {label}: {{targets: [{{provider: {label}, model: fake-model}}]}}")
    port = free_port()
    config = folder / "dragoman.yaml"
    lines = [f"server: {{port: {port}}}", "store: {kind: memory}", "providers:", *providers, "models:", *models]
    config.write_text("\n".join(lines) + "\n")
    command = [DRAGOMAN, "serve", "--config", str(config), "--log-format", "json"]
    log = folder / "proxy.log"
    process = stack.enter_context(run_process(command, log))
    prefer(process, realtime)
    if not wait_until_listening(port, process):
        sys.exit(f"the proxy does not start: {log.read_text()[-2000:]}")
    stack.callback(lambda: count_defects(log))
    return port, process


def count_defects(log: Path) -> None:
    defects = [line for line in log.read_text(errors="replace").splitlines() if '"defect"' in line]
    if defects:
        print(f"{len(defects)} defects in the log, the first: {defects[0][:3000]}", file=sys.stderr)


def warm_up(port: int) -> None:
    """Let the proxy compile the schemas that it needs."""
    for body in islice(draw_bodies(random.Random(0), 100, 1_000, NAMES), WARM_UP):
        send(port, body)


def start_other(stack: ExitStack, folder: Path) -> int:
    """The port of a server that reads bodies and does nothing else."""
    port = free_port()
    command = [sys.executable, str(HERE / "_discarding_server.py"), str(port)]
    stack.enter_context(run_process(command, folder / "discarding.log"))
    wait_until_listening(port)
    return port


def run_rounds(port: int, other: int, pid: int, options: argparse.Namespace) -> tuple[Attack, dict[str, list[Span]]]:
    """Send the bodies. Returns what they got, and the spans of each phase."""
    attack = Attack()
    phases: dict[str, list[Span]] = {"alone": [], "beside": [], "hostile": []}
    bodies, others = (draw_bodies(random.Random(options.seed), VALUE_LIMIT, BODY_LIMIT, NAMES) for _ in range(2))

    def send_to_other() -> None:
        end = time.monotonic() + BESIDE
        while time.monotonic() < end:
            send(other, next(others))
            time.sleep(options.pause)

    for number in range(ROUNDS):
        share = (number + 1) * options.bodies // ROUNDS - len(attack.sent)
        for phase, work in (
            ("alone", partial(time.sleep, ALONE)),
            ("beside", send_to_other),
            ("hostile", partial(run_attack, attack, port, pid, islice(bodies, share), options.pause)),
        ):
            start = time.monotonic()
            work()
            phases[phase].append((start, time.monotonic()))
        print(f"{len(attack.sent)} bodies ...", file=sys.stderr, flush=True)
    return attack, phases


@contextmanager
def read_neighbor(port: int, case: str, *, realtime: bool) -> Iterator[Answers]:
    """Run a neighbor; its answers are there at the end."""
    command = [sys.executable, str(HERE / "_neighbor.py"), str(port), case]
    answers: Answers = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        prefer(process, realtime)
        yield answers
        output, _ = process.communicate()
    answers += json.loads(output)


def run_attack(attack: Attack, port: int, pid: int, bodies: Iterable[Hostile], pause: float) -> None:
    for body in bodies:
        start = time.monotonic()
        status, reply = send(port, body)
        attack.sent.append((start, time.monotonic(), Hostile(body.dialect, body.protocol, body.path, body.name, b"")))
        attack.statuses[status] += 1
        if not is_right(body, status, reply):
            attack.wrong.append(f"{status} for {body.dialect} {body.protocol}, {body.name}: {reply[:300]!r}")
        attack.peak = max(attack.peak, read_memory(pid))
        time.sleep(pause)


def measure_holds(options: argparse.Namespace) -> list[tuple[float, str]]:
    """For each of the first bodies, the longest time that the thread for large bodies keeps the interpreter's lock from
    another thread, in milliseconds of its own processor time: other load on the machine does not count. Largest
    first."""
    routes, found, threads = RouteTable(dialects, {}), [], ThreadPoolExecutor(1)
    sys.setswitchinterval(SWITCH)
    gc.freeze()  # as `dragoman serve` does it
    gc.set_threshold(50_000, 20, 100)
    bodies = draw_bodies(random.Random(options.seed), VALUE_LIMIT, BODY_LIMIT, NAMES)
    plans = {name: plan_target(name, one, list(one.called), Target("m")) for name, one in dialects.items()}
    for body in islice(bodies, min(options.bodies, HOLDS)):
        route = routes.match(body.path)
        assert route is not None
        pipeline = Pipeline(route, Call("POST", body.path, {}))
        hold = watch_thread(threads, partial(judge, pipeline, body.data, plans))
        found.append((1000 * hold, f"{body.dialect} {body.protocol} {body.name}"))
    return sorted(found, reverse=True)


def judge(pipeline: Pipeline, body: bytes, plans: Mapping[str, TargetPlan]) -> None:
    """What the proxy does with a body before it calls a provider."""
    try:
        plan = plans.get(str(pipeline.receive(body).get("model")))
        if plan is not None:
            pipeline.prepare(plan)
    except Fault as fault:
        orjson.dumps(pipeline.render_fault(fault).body)


def watch_thread(threads: ThreadPoolExecutor, work: Callable[[], None]) -> float:
    """Run work in the one thread of a pool: the longest time in which this thread could not run, in seconds of the
    other's processor time."""
    clock = time.pthread_getcpuclockid(threads.submit(threading.get_ident).result())
    longest, last = 0.0, time.clock_gettime(clock)
    job = threads.submit(work)
    while not job.done():
        time.sleep(0.0001)
        now = time.clock_gettime(clock)
        longest, last = max(longest, now - last), now
    job.result()
    return longest


def send(port: int, body: Hostile) -> tuple[int, bytes]:
    """The status and the body of the answer; 0 if the connection broke."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", body.path, body.data, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, repr(error).encode()
    finally:
        connection.close()


def is_right(body: Hostile, status: int, reply: bytes) -> bool:
    """A success, or an error that is the client's, in its dialect's form."""
    if status == 200:
        return True
    if not 400 <= status < 500:
        return False
    try:
        error = json.loads(reply)
    except ValueError:
        return False
    return load_validator(f"{body.dialect}/{body.protocol}.error", dialects[body.dialect].served_profile).accepts(error)


def read_memory(pid: int) -> int:
    """The memory of a process and of its children, in KiB."""
    try:
        children = [
            child for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()
        ]
        resident = int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0])
    except (OSError, IndexError):  # a child that has just ended
        return 0
    return resident + sum(read_memory(int(child)) for child in children)


def percentile(answers: Answers, share: float) -> float:
    """In milliseconds."""
    return 1000 * statistics.quantiles([took for _, took in answers], n=1000)[int(share * 1000) - 1]


def select(answers: Answers, spans: Iterable[Span]) -> Answers:
    """Those that were asked for in these spans."""
    spans = [*spans]
    return [answer for answer in answers if any(start <= answer[0] < end for start, end in spans)]


def compare(answers: Answers, phases: Mapping[str, Sequence[Span]]) -> str:
    found = [percentile(select(answers, phases[phase]), 0.99) for phase in ("hostile", "beside", "alone")]
    return "{:.1f} ms ({:.1f} if another server gets the bodies, {:.1f} alone)".format(*found)


def report(attack: Attack, live: Answers) -> None:
    print("answers:", ", ".join(f"{count} x {status}" for status, count in sorted(attack.statuses.items())))
    for text in attack.wrong[:SHOWN]:
        print("wrong:", text)
    print("the longest blocks of the loop, as a neighbor saw them, and the body that was sent meanwhile:")
    for start, took in sorted(live, key=lambda answer: answer[1], reverse=True)[:SHOWN]:
        meanwhile = [body for begun, ended, body in attack.sent if begun < start + took and ended > start]
        names = "; ".join(f"{body.dialect} {body.protocol} {body.name}" for body in meanwhile[:2])
        print(f"  {1000 * took:6.1f} ms  {names}")


if __name__ == "__main__":
    main()
